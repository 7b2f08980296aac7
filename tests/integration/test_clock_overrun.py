"""A job that takes longer than its interval: others lose no slot, and its own are accounted for."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from flask_cronlock import Run

from ..support.clocks import SECOND, has_run, slots_of, ticking, without_gap
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

Window = tuple[datetime, datetime]


def overrun(world: World, catch_up: str) -> list[Window]:
    """Let two runs of ``slow`` last until ``fast`` has run three more times; return its windows."""
    windows: list[Window] = []

    @world.cron.job("fast", every="1s", catch_up="all")
    def fast() -> None:
        world.mark()

    @world.cron.job("slow", every="1s", catch_up=catch_up)
    def slow(run: Run) -> None:
        assert run.slot is not None
        assert run.previous_slot is not None
        windows.append((run.previous_slot, run.slot))
        if len(windows) <= 2:
            over = run.slot + timedelta(seconds=3)
            wait_until(lambda: world.database.value("SELECT clock_timestamp()") >= over)

    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "slow", 3))

    assert not clocks.log.troubles()
    assert without_gap(slots_of(world, "fast", "done"))
    assert slots_of(world, "slow", "done") == [slot for _, slot in windows]
    assert all(before == after for (_, before), (after, _) in pairwise(windows))
    return windows


@pytest.mark.parametrize("catch_up", ["latest", "none"])
def test_slots_that_an_overrun_skips_are_missed_and_their_time_is_the_next_runs(
    world: World, catch_up: str
) -> None:
    windows = overrun(world, catch_up)
    assert len(slots_of(world, "slow", "missed")) >= 4
    assert without_gap(slots_of(world, "slow"))
    assert all(slot - before >= timedelta(seconds=3) for before, slot in windows[1:3])


def test_slots_that_are_all_caught_up_run_in_order_after_an_overrun(world: World) -> None:
    windows = overrun(world, "all")
    assert slots_of(world, "slow", "missed") == []
    assert all(slot - before == SECOND for before, slot in windows)


def test_more_jobs_than_workers_all_get_their_turn(world: World) -> None:
    names = ("a", "b", "c")
    for name in names:
        world.cron.job(name, every="1s", catch_up="all")(world.mark)

    with ticking(world, workers=1) as clocks:
        wait_until(lambda: all(has_run(world, name, 3) for name in names))
    assert not clocks.log.troubles()
    assert all(without_gap(slots_of(world, name, "done")) for name in names)
