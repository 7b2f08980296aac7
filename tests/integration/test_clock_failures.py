"""What a clock makes of a slot that fails: it comes back, ever later, and at last leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest

from flask_cronlock import Run, lookout

from ..support.clocks import (
    Hands,
    attempts_of,
    count_looks,
    hands_of,
    has_run,
    know_jobs,
    lookout_of,
    slots_of,
    ticking,
)
from ..support.outcomes import error_of
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
WAITS = [timedelta(seconds=seconds) for seconds in (1, 5, 30, 120, 600)]
"""After each failure but the last."""


@pytest.fixture
def hands(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    """The world's clock, which stands at noon, and is looked at often."""
    monkeypatch.setattr(lookout, "LOOK", 0.05)
    monkeypatch.setattr(lookout, "AGAIN", 0.05)
    with hands_of(NOON, world) as hands:
        yield hands


def with_failing(world: World) -> World:
    """Register a job with a slot at noon that always fails, known for a day."""

    @world.cron.job("failing", schedule="0 12 * * *")
    def failing() -> None:
        world.note("lost")
        world.mark()
        raise ValueError("as asked")

    know_jobs(world, NOON - timedelta(hours=1))
    return world


def test_each_retry_comes_later_and_the_last_is_the_last(world: World, hands: Hands) -> None:
    with_failing(world)
    looked = count_looks(world)
    with ticking(world) as clocks:
        for number, wait in enumerate(WAITS, 1):
            wait_until(lambda n=number: attempts_of(world, "failing") == n)
            hands.now += wait - TICK
            looked()
            assert attempts_of(world, "failing") == number
            hands.now += TICK
        wait_until(lambda: attempts_of(world, "failing") == 6)
        hands.move(hours=20)
        looked()
    assert tried_at(world) == list(accumulate(WAITS, initial=NOON))
    assert world.marks == len(clocks.log.of("clock_fired")) == 6
    assert world.notes == []
    assert world.runs() == []


def test_a_slot_that_was_given_up_is_left_to_hits_also_after_a_restart(
    world: World, hands: Hands
) -> None:
    with_failing(world)
    fail_before(world, 6, NOON)
    hands.move(hours=1)
    with ticking(world) as clocks:
        count_looks(world)()
        assert clocks.log.of("clock_fired") == []
        error_of(world.run("failing"))
        assert world.marks == 1
        hands.move(hours=23)
        wait_until(lambda: world.marks == 2)


def test_several_clocks_try_a_slot_hardly_more_often_than_one(
    world: World, hands: Hands, make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two may come to it at the same moment, one after the other's failure; no more than that."""
    monkeypatch.setattr(lookout, "RECHECK", 0.05)
    other = with_failing(make_world())
    with_failing(world)
    looked, looked_too = count_looks(world), count_looks(other)
    with hands_of(NOON, other) as hands_too, ticking(world, other):
        for wait in (*WAITS, timedelta(hours=1), timedelta(hours=2)):
            looked()
            looked_too()
            hands.now = hands_too.now = hands.now + wait
    assert 6 <= attempts_of(world, "failing") <= 7


def test_a_retry_that_is_not_due_is_waited_for_after_a_restart(world: World, hands: Hands) -> None:
    with_failing(world)
    fail_before(world, 3, NOON)
    hands.move(seconds=29)
    with ticking(world):
        count_looks(world)()
        assert world.marks == 0
        hands.move(seconds=1)
        wait_until(lambda: world.marks == 1)


def test_a_slot_that_a_hit_tried_in_vain_is_the_clocks_to_retry(world: World, hands: Hands) -> None:
    with_failing(world)
    error_of(world.run("failing"))
    with ticking(world):
        count_looks(world)()
        assert world.marks == 1
        hands.move(seconds=1)
        wait_until(lambda: world.marks == 2)


def test_a_retry_that_goes_well_is_the_last(world: World, hands: Hands) -> None:
    @world.cron.job("shaky", schedule="0 12 * * *")
    def shaky() -> None:
        world.mark()
        if world.marks < 3:
            raise ValueError("as asked")

    know_jobs(world, NOON - timedelta(hours=1))
    looked = count_looks(world)
    with ticking(world):
        for wait in (1, 5, 30, 120, 600):
            looked()
            hands.move(seconds=wait)
        looked()
    assert world.marks == 3
    assert slots_of(world, "shaky", "done") == [NOON]


def test_retries_of_one_slot_are_by_the_real_clock(world: World) -> None:
    """A second after the first failure, and five after the second."""

    @world.cron.job("failing", every="1000d")
    def failing() -> None:
        raise ValueError("as asked")

    know_jobs(world, datetime(2020, 1, 1, tzinfo=UTC))
    with ticking(world):
        wait_until(lambda: attempts_of(world, "failing") == 3)
    (first, ended), (second, ended_again), (third, _) = world.database.query(
        "SELECT started_at, finished_at FROM cronlock_attempt ORDER BY started_at"
    )
    assert first <= ended
    assert second - ended >= timedelta(seconds=1)
    assert third - ended_again >= timedelta(seconds=5)


def test_a_failing_slot_holds_up_neither_the_next_one_nor_another_job(world: World) -> None:
    @world.cron.job("failing", every="1s", catch_up="all")
    def failing(run: Run) -> None:
        raise ValueError(f"as asked for {run.slot}")

    world.cron.job("good", every="1s", catch_up="all")(world.mark)
    with ticking(world):
        wait_until(lambda: has_run(world, "good", 4))
        wait_until(lambda: len(failed_slots(world)) >= 4)


def failed_slots(world: World) -> list[object]:
    return world.database.query("SELECT DISTINCT slot_key FROM cronlock_attempt")


def test_a_slot_that_broke_is_fired_once_and_left(world: World, hands: Hands) -> None:
    """A raw COMMIT kept part of what it did, so nobody may do it again unasked."""

    @world.cron.job("raw", schedule="0 12 * * *")
    def raw() -> None:
        world.mark()
        world.db.session.connection().connection.driver_connection.execute("COMMIT")

    know_jobs(world, NOON - timedelta(hours=1))
    with ticking(world) as clocks:
        wait_until(lambda: slots_of(world, "raw", "broken"))
        hands.move(hours=1)
        count_looks(world)()
    assert world.marks == len(clocks.log.of("clock_fired")) == 1


def test_a_slot_that_an_earlier_process_broke_is_named_once_and_left(
    world: World, hands: Hands
) -> None:
    with_failing(world)
    world.probe.execute(
        "INSERT INTO cronlock_run (id, namespace, job, slot_key, scheduled_at, trigger, forced,"
        " instance, app, started_at, state) VALUES (gen_random_uuid(), '', 'failing',"
        " '2026-06-10T12:00', %(at)s, 'http', false, 'web/1', 'world', %(at)s, 'running')",
        {"at": NOON},
    )
    with ticking(world) as clocks:
        wait_until(lambda: slots_of(world, "failing", "broken"))
        hands.move(hours=1)
        count_looks(world)()
    assert world.marks == 0
    assert len(clocks.log.of("clock_fired")) == len(clocks.log.of("job_failed")) == 1


def test_a_paused_job_is_not_fired_and_is_when_it_goes_on(world: World, hands: Hands) -> None:
    world.cron.job("digest", schedule="0 12 * * *")(world.mark)
    know_jobs(world, NOON - timedelta(hours=1))
    world.database.query("UPDATE cronlock_job SET paused_at = now()")
    with ticking(world) as clocks:
        count_looks(world)()
        assert clocks.log.of("clock_fired") == []
        world.database.query("UPDATE cronlock_job SET paused_at = NULL")
        wait_until(lambda: has_run(world, "digest", 1))
    assert world.marks == len(clocks.log.of("clock_fired")) == 1


def test_a_pause_does_not_make_the_clock_busy(world: World) -> None:
    """The job's open slot is looked at again when a slot begins or after half a minute."""
    world.cron.job("digest", every="1000d")(world.mark)
    know_jobs(world, datetime(2020, 1, 1, tzinfo=UTC))
    world.database.query("UPDATE cronlock_job SET paused_at = now()")
    looks = lookout_of(world)
    assert looks.look(0) == []
    assert looks.seconds(0) == lookout.LOOK == 30
    assert looks.seconds(29) == 1


def tried_at(world: World) -> list[datetime]:
    """Return when each failed attempt began, by the clock that the world goes by."""
    rows = world.database.query("SELECT started_at FROM cronlock_attempt ORDER BY started_at")
    return [began.astimezone(UTC) for (began,) in rows]


def fail_before(world: World, times: int, at: datetime) -> None:
    """Write that the slot of noon failed some *times*, the last of them *at* that time."""
    world.probe.execute(
        "INSERT INTO cronlock_attempt (id, namespace, job, slot_key, scheduled_at, trigger, forced,"
        " instance, app, started_at, finished_at, error) SELECT gen_random_uuid(), '', 'failing',"
        " '2026-06-10T12:00', %(noon)s, 'clock', false, 'web/1', 'world', %(at)s, %(at)s, 'E: x'"
        " FROM generate_series(1, %(times)s)",
        {"noon": NOON, "at": at, "times": times},
    )
