"""Clocks that race each other, step back, or wake a little late each time."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from itertools import chain

import pytest

from flask_cronlock import Ran, Reason
from flask_cronlock.testing import ManualClock, manual_clock

from ..support.bodies import Gate
from ..support.outcomes import reason_of
from ..support.slots import at
from ..support.time_travel import Recorder, instants, posts, rows, slots_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)


def test_a_slot_that_two_clocks_race_for_runs_once_and_the_next_week_is_not_lost(
    make_world: Callable[..., World], gate: Gate
) -> None:
    worlds = [make_world(TESTING=True) for _ in range(2)]
    how = {"schedule": "0 6 * * 1", "tz": "Europe/Prague", "work": gate.hold}
    jobs = [Recorder(world, **how) for world in worlds]
    start, slot, next_slot = "2026-08-03T03:59:59Z", at("2026-08-03T04:00Z"), "2026-08-10T04:00Z"

    with (
        manual_clock(worlds[0].app, start) as first,
        manual_clock(worlds[1].app, start) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        for clock in (first, second):
            clock.move_to(slot)
        winner = pool.submit(first.fire)
        try:
            assert gate.entered.wait(20)
            (loser,) = second.fire()
            for clock in (first, second):
                clock.tick("27s")
            assert second.fire() == []
        finally:
            gate.open()
        (outcome,) = winner.result()
        assert second.fire() == first.fire() == []

        assert reason_of(loser) is Reason.ALREADY_RUNNING
        assert isinstance(outcome, Ran)
        assert outcome.next_slot == at(next_slot)
        for clock in (first, second):
            clock.move_to("2026-08-10T03:59:59Z")
            assert clock.fire() == []
        for clock in (first, second):
            clock.move_to(next_slot)
        assert [slots_of(clock.fire()) for clock in (first, second)] == [instants(next_slot), []]

    assert [job.slots for job in jobs] == [[slot, at(next_slot)], []]
    assert rows(worlds[0]) == [slot, at(next_slot)]
    assert rows(worlds[0], "missed") == []


def test_clocks_that_fire_at_the_same_moment_run_each_slot_once(
    make_world: Callable[..., World],
) -> None:
    worlds = [make_world(TESTING=True) for _ in range(2)]
    jobs = [Recorder(world, schedule="0 6 * * 1", tz="Europe/Prague") for world in worlds]
    slots = [at("2026-08-03T04:00Z") + number * WEEK for number in range(12)]

    with (
        manual_clock(worlds[0].app, slots[0] - MINUTE) as first,
        manual_clock(worlds[1].app, slots[0] - MINUTE) as second,
        ThreadPoolExecutor(2) as pool,
    ):
        for slot in slots:
            for clock in (first, second):
                clock.move_to(slot)
            outcomes = chain(*pool.map(ManualClock.fire, (first, second)))
            assert [isinstance(outcome, Ran) for outcome in outcomes].count(True) == 1

    assert sorted(slot for job in jobs for slot in job.slots) == rows(worlds[0]) == slots


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True)


MOMENTS = ["12:00:00", "12:01:00", "12:02:00", "12:00:30", "12:03:00"]


def test_a_clock_that_steps_back_repeats_no_slot_and_goes_on(world: World) -> None:
    job = Recorder(world, schedule="* * * * *")
    fired = []
    with manual_clock(world.app, "2024-06-10T11:59:30Z") as clock:
        for moment in MOMENTS:
            clock.move_to(f"2024-06-10T{moment}Z")
            fired.append(len(clock.fire()))

    assert fired == [1, 1, 1, 0, 1]
    assert len(job.slots) == 4
    assert rows(world, "missed") == []
    job.assert_seamless("2024-06-10T11:59Z")


def test_hits_while_the_clock_steps_back_repeat_no_slot(world: World) -> None:
    job = Recorder(world, schedule="* * * * *")
    with manual_clock(world.app, "2024-06-10T11:59:30Z") as clock:
        told = posts(world, clock, *[f"2024-06-10T{moment}Z" for moment in MOMENTS])

    assert told == ["ran", "ran", "ran", "already ran", "ran"]
    assert len(job.slots) == 4
    job.assert_seamless("2024-06-10T11:59Z")


def test_in_the_second_half_past_one_the_next_minute_is_ahead(world: World) -> None:
    job = Recorder(world, schedule="* * * * *", tz="America/New_York")
    with manual_clock(world.app, "2026-11-01T05:29:30Z") as clock:
        for moment in ("2026-11-01T05:30Z", "2026-11-01T05:31Z", "2026-11-01T06:30:15Z"):
            clock.move_to(moment)
            (outcome,) = clock.fire()
            assert outcome.next_slot is not None
            next_slot = outcome.next_slot.astimezone(UTC)
            assert timedelta() < next_slot - clock.now() <= MINUTE
        assert next_slot == at("2026-11-01T06:31:00Z")
        clock.move_to("2026-11-01T06:31Z")
        clock.fire()

    assert job.slots == instants(
        "2026-11-01T05:30Z", "2026-11-01T05:31Z", "2026-11-01T06:30Z", "2026-11-01T06:31Z"
    )


def test_a_clock_that_wakes_late_each_time_does_not_drift(world: World) -> None:
    job = Recorder(world, schedule="* * * * *")
    latencies = random.Random(95)
    slots = [at("2024-06-10T12:00Z") + number * MINUTE for number in range(200)]
    late = [timedelta(milliseconds=latencies.uniform(3, 40)) for _ in slots]
    next_slot = slots[0]
    with manual_clock(world.app, slots[0] - MINUTE / 2) as clock:
        for latency in late:
            clock.move_to(next_slot + latency)
            (outcome,) = clock.fire()
            assert outcome.next_slot is not None
            next_slot = outcome.next_slot

    assert job.slots == rows(world) == slots
    lateness = world.database.query(
        "SELECT started_at - scheduled_at FROM cronlock_run ORDER BY scheduled_at"
    )
    assert [row[0] for row in lateness] == late
    job.assert_seamless("2024-06-10T11:59Z")


@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_a_clock_that_was_ahead_when_it_first_saw_a_job_fires_it_once_it_is_put_right(
    make_world: Callable[..., World], catch_up: str
) -> None:
    world = make_world(TESTING=True)
    job = Recorder(world, schedule="* * * * *", catch_up=catch_up)
    with manual_clock(world.app, "2026-08-03T13:00:30Z") as clock:
        clock.move_to("2026-08-03T12:00:30Z")
        assert clock.fire() == []
        clock.tick("31s")
        clock.fire()
    assert job.slots == instants("2026-08-03T12:01Z")
