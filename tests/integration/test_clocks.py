"""Any number of clocks on one database: each slot once, and none left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from flask_cronlock import Run

from ..support.clocks import has_run, slots_of, ticking, without_gap
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def with_jobs(world: World, begun: list[tuple[str, object]]) -> World:
    """Register a job of each policy, with a slot every second."""
    for policy in ("latest", "all", "none"):

        @world.cron.job(policy, every="1s", catch_up=policy)
        def job(run: Run) -> None:
            begun.append((run.job, run.slot))
            world.note(f"{run.job} {run.slot}")

    return world


def test_three_clocks_run_every_slot_once(make_world: Callable[..., World]) -> None:
    begun: list[tuple[str, object]] = []
    worlds = [with_jobs(make_world(), begun) for _ in range(3)]
    with ticking(*worlds) as clocks:
        wait_until(lambda: has_run(worlds[0], "all", 6))

    assert not clocks.log.troubles()
    assert set(Counter(begun).values()) == {1}
    assert sorted(f"{job} {slot}" for job, slot in begun) == worlds[0].notes
    assert without_gap(slots_of(worlds[0], "all", "done"))
    # A stall of the machine may make the others miss a slot, but then the ledger says so.
    for policy in ("latest", "none"):
        assert len(slots_of(worlds[0], policy, "done")) > 1
        assert without_gap(slots_of(worlds[0], policy))
    assert worlds[0].attempts() == []


def test_each_clock_takes_its_part(make_world: Callable[..., World]) -> None:
    """One clock ends, and the others go on without a gap."""
    begun: list[tuple[str, object]] = []
    worlds = [with_jobs(make_world(), begun) for _ in range(2)]
    with ticking(worlds[0]) as first, ticking(worlds[1]) as second:
        wait_until(lambda: has_run(worlds[0], "all", 2))
        first.stop()
        ran = len(slots_of(worlds[0], "all", "done"))
        wait_until(lambda: has_run(worlds[0], "all", ran + 2))
        second.stop()
    assert set(Counter(begun).values()) == {1}
    assert without_gap(slots_of(worlds[0], "all", "done"))


def test_a_hit_and_a_clock_run_a_slot_once(make_world: Callable[..., World]) -> None:
    begun: list[tuple[str, object]] = []
    hit, world = (with_jobs(make_world(), begun) for _ in range(2))
    with ticking(world):
        while not has_run(world, "all", 4):
            for policy in ("latest", "all", "none"):
                hit.run(policy)
    assert set(Counter(begun).values()) == {1}
    assert without_gap(slots_of(world, "all", "done"))
