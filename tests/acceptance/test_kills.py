"""A killed run frees its lock at once, leaves no trace, and its slot runs at the next hit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Skipped

from ..support.holders import free, holding
from ..support.processes import wait_until
from ..support.sites import SLACK, Site
from ..support.worlds import World

CHECK_INTERVAL = 1
"""Seconds after which the server looks whether the client of a busy backend is still there."""


@pytest.mark.parametrize(
    ("job", "noticed_after"), [("idle", 0), ("in-sql", CHECK_INTERVAL)], ids=["idle", "in-sql"]
)
def test_a_killed_run_frees_its_lock_and_the_next_hit_runs_the_slot(
    site: Site,
    site_world: World,
    next_hit: Callable[[str], str],
    job: str,
    noticed_after: float,
) -> None:
    with holding(site, job, timeout=60) as holder:
        assert next_hit(job) == "already running"
        holder.kill()
        wait_until(lambda: free(site.database), noticed_after + SLACK)
        assert next_hit(job) == "ran"

    begun_and_done = [(job, "done")]
    assert [(name, state) for name, _, state in site_world.runs()] == begun_and_done
    assert site_world.notes == [f"next {job}"]
    assert site_world.attempts() == []
    assert site_world.marks == 2  # the killed one's beginning, and the next run


@pytest.mark.parametrize("site", ["direct"], indirect=True)
def test_a_contender_is_told_whose_run_it_is_and_since_when(site: Site, site_world: World) -> None:
    @site_world.cron.job("idle", every="1d")
    def idle() -> None: ...

    with holding(site, "idle", timeout=60) as holder:
        begun = site.database.value("SELECT at FROM mark")
        refused = site_world.run("idle")

    assert isinstance(refused, Skipped)
    assert refused.held_by == holder.name
    assert refused.held_since is not None
    assert abs((begun - refused.held_since).total_seconds()) < SLACK
