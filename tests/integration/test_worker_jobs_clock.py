"""The clock and jobs under ``on="worker"``: it has each slot put on the queue, and no more."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from flask_cronlock import Run
from flask_cronlock.clock import Clock
from flask_cronlock.lookout import RECHECK

from ..support.clocks import has_run, know_jobs, logged, state_of, ticking
from ..support.errands import digest_job, requests, rows, work
from ..support.outcomes import LONG
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
AGE = "UPDATE cronlock_attempt SET finished_at = finished_at - interval '1h'"
ON_THE_QUEUE = ("cronlock.jobs", "cronlock-run", "todo")


def fail() -> None:
    raise ValueError("as asked")


class Looks:
    """A clock whose looks a test makes by hand."""

    def __init__(self, world: World) -> None:
        self._clock = Clock(world.app, state_of(world), 1, timedelta(seconds=20))
        self._lookout = self._clock._lookout
        self._now = time.monotonic()

    def look(self) -> int:
        """Look again, as late as it takes until all that waited is due; return how many fired."""
        self._now += 2 * RECHECK
        firings = self._lookout.look(self._now)
        for firing in firings:
            self._lookout.take_in(firing, self._clock._run(firing), self._now)
        return len(firings)


def test_a_slot_is_run_by_a_worker_that_the_clock_had_asked(world: World) -> None:
    world.cron.job("digest", every=LONG, on="worker")(world.mark)
    know_jobs(world, LONG_AGO)

    with ticking(world) as clocks:
        wait_until(lambda: rows(world))
        assert world.marks == 0
        assert work(world) == "done"
        wait_until(lambda: has_run(world, "digest", 1))

    asked = "SELECT trigger FROM cronlock_run WHERE state = 'done'"
    assert world.database.query(asked) == [("queue",)]
    assert world.database.query("SELECT trigger FROM cronlock_request") == [("clock",)]
    (fired,) = clocks.log.of("clock_fired")
    assert "had a worker asked to run digest for 20" in fired
    assert clocks.log.troubles() == []


def test_a_slot_that_waits_for_a_worker_is_neither_queued_nor_logged_again(world: World) -> None:
    world.cron.job("digest", every=LONG, on="worker")(world.mark)
    know_jobs(world, LONG_AGO)
    first, second = Looks(world), Looks(world)

    with logged() as log:
        for _ in range(4):
            first.look()
            second.look()

    assert rows(world) == [ON_THE_QUEUE]
    assert len(log.records) == 2
    assert [len(log.of(action)) for action in ("job_queued", "clock_fired")] == [1, 1]


def test_once_it_has_run_the_clock_is_done_with_it(world: World) -> None:
    world.cron.job("digest", every=LONG, on="worker")(world.mark)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    assert work(world) == "done"

    assert [clock.look() for _ in range(3)] == [0, 0, 0]
    assert rows(world) == []


def test_a_row_that_the_queue_lost_is_put_there_again_by_the_clock(world: World) -> None:
    world.cron.job("digest", every=LONG, on="worker")(world.mark)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    world.database.query("DELETE FROM procrastinate_jobs")

    clock.look()

    assert rows(world) == [ON_THE_QUEUE]
    assert requests(world) == [("digest", "queued", 0)]


def test_all_slots_are_caught_up_oldest_first_each_after_the_one_before(world: World) -> None:
    seen: list[datetime] = []
    world.cron.job("digest", every="1h", catch_up="all", max_catch_up=3, on="worker")(
        lambda run: seen.append(run.slot)
    )
    know_jobs(world, LONG_AGO)
    clock = Looks(world)

    for _ in range(3):
        for _ in range(3):
            clock.look()
        assert len(rows(world)) == 1
        assert work(world) == "done"

    assert seen == sorted(seen)
    assert len(seen) == 3


def test_a_run_that_waits_to_be_tried_again_by_its_worker_is_left_to_it(
    make_world: Callable[..., World],
) -> None:
    world = make_world()

    def fail() -> None:
        raise ValueError("as asked")

    world.cron.job("digest", every=LONG, on="worker")(fail)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    for _ in range(3):
        assert isinstance(work(world), float)
        world.database.query(AGE)
        clock.look()

    assert rows(world) == [ON_THE_QUEUE]
    assert requests(world) == [("digest", "queued", 3)]


def test_what_its_workers_gave_up_is_begun_anew_by_a_hit_and_by_no_clock(world: World) -> None:
    digest_job(world, fail)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    while work(world) != "given up":
        clock.look()
    world.database.query(AGE)

    for looks in (clock, Looks(world)):
        assert sum(looks.look() for _ in range(6)) == 1
    assert requests(world) == [("digest", "ended", 5)]
    assert world.marks == 5

    assert world.post("digest").status_code == 202
    assert requests(world) == [("digest", "queued", 0)]


def test_one_that_brought_its_workers_down_is_left_by_the_clock_too(world: World) -> None:
    digest_job(world)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    world.database.query("UPDATE cronlock_request SET runs = 5")
    assert work(world) == "given up"

    assert [clock.look() for _ in range(4)] == [1, 0, 0, 0]
    assert (requests(world), world.marks) == ([("digest", "ended", 5)], 0)


def test_one_that_was_paused_on_the_worker_is_handed_over_again_once_it_goes_on(
    world: World,
) -> None:
    digest_job(world)
    know_jobs(world, LONG_AGO)
    Looks(world).look()
    world.database.query("UPDATE cronlock_job SET paused_at = now()")
    assert work(world) == "done"
    assert requests(world) == [("digest", "ended", 1)]
    world.database.query("UPDATE cronlock_job SET paused_at = NULL")

    Looks(world).look()

    assert rows(world) == [ON_THE_QUEUE]


def test_slots_that_are_caught_up_go_on_after_one_that_was_given_up(world: World) -> None:
    seen: list[datetime] = []

    def fail_first(run: Run) -> None:
        seen.append(run.slot)
        if run.slot == seen[0]:
            raise ValueError("as asked")

    world.cron.job("digest", every="1h", catch_up="all", max_catch_up=2, on="worker")(fail_first)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    clock.look()
    while work(world) != "given up":
        clock.look()
    world.database.query(AGE)
    for _ in range(3):
        clock.look()

    assert work(world) == "done"
    assert seen[:-1] == [seen[0]] * 5
    assert seen[-1] > seen[0]


def test_where_the_queue_cannot_be_reached_the_clock_says_so_and_goes_on(world: World) -> None:
    world.cron.job("digest", every=LONG, on="worker")(world.mark)
    know_jobs(world, LONG_AGO)
    clock = Looks(world)
    world.database.query("ALTER TABLE procrastinate_jobs RENAME TO elsewhere")
    try:
        with logged() as log:
            clock.look()
    finally:
        world.database.query("ALTER TABLE elsewhere RENAME TO procrastinate_jobs")

    assert "could not be begun by the clock" in log.of("clock_failed")[0]
    clock.look()
    assert rows(world) == [ON_THE_QUEUE]
