"""What a clock makes of the slots that went by while there was none, or while a run took long."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import chain
from threading import Event, Semaphore
from typing import Any

import pytest

from flask_cronlock import Outcome, Ran
from flask_cronlock.testing import ManualClock, manual_clock

from ..support.slots import at
from ..support.time_travel import Recorder, instants, rows, slots_of, stamps
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

FIVE, MINUTE, HOUR = timedelta(minutes=5), timedelta(minutes=1), timedelta(hours=1)
NOON = at("2024-06-10T12:00Z")
POLICIES: list[tuple[dict[str, Any], int, int]] = [
    ({"catch_up": "latest"}, 1, 11),
    ({"catch_up": "all", "max_catch_up": 5}, 5, 7),
    ({"catch_up": "none"}, 0, 0),
]
"""With how many runs and how many missed slots each makes up for those from 12:05 to 13:00."""


def every(step: timedelta, begin: datetime, end: datetime) -> list[datetime]:
    """List the instants after *begin*, up to and including *end*."""
    return [begin + number * step for number in range(1, (end - begin) // step + 1)]


def run_until_the_outage(world: World) -> None:
    with manual_clock(world.app, "2024-06-10T11:58Z") as clock:
        clock.move_to(NOON)
        assert slots_of(clock.fire()) == [NOON]
        clock.move_to("2024-06-10T12:02Z")
        assert clock.fire() == []


@pytest.mark.parametrize(("policy", "made_up", "missed"), POLICIES)
@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "frozen"])
def test_an_hour_without_a_clock_is_made_up_for_as_the_policy_says(
    make_world: Callable[..., World],
    policy: dict[str, Any],
    made_up: int,
    missed: int,
    restarted: bool,
) -> None:
    world = make_world(TESTING=True)
    job = Recorder(world, schedule="*/5 * * * *", **policy)
    slots = every(FIVE, NOON, NOON + HOUR)
    with ExitStack() as stack:
        if restarted:
            run_until_the_outage(world)
            clock = stack.enter_context(manual_clock(world.app, "2024-06-10T13:01Z"))
        else:
            clock = stack.enter_context(manual_clock(world.app, NOON))
            world.run("x")
            clock.move_to("2024-06-10T13:01:01Z")
        assert slots_of(clock.fire()) == slots[len(slots) - made_up :]
        assert clock.fire() == []
        assert rows(world, "missed") == slots[:missed]
        clock.move_to("2024-06-10T13:04:59Z")
        assert clock.fire() == []
        clock.move_to("2024-06-10T13:05Z")
        assert slots_of(clock.fire()) == instants("2024-06-10T13:05Z")

    assert rows(world, "missed") == slots[: 12 - made_up]
    assert rows(world) == job.slots
    job.assert_seamless("2024-06-10T11:55Z")


@pytest.mark.parametrize(("policy", "made_up", "missed"), POLICIES)
def test_two_instances_that_restart_together_make_up_for_it_once(
    make_world: Callable[..., World], policy: dict[str, Any], made_up: int, missed: int
) -> None:
    worlds = [make_world(TESTING=True) for _ in range(2)]
    jobs = [Recorder(world, schedule="*/5 * * * *", **policy) for world in worlds]
    run_until_the_outage(worlds[0])
    before = [window for job in jobs for window in job.windows]
    slots = every(FIVE, NOON, NOON + HOUR)

    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        clocks = [
            stack.enter_context(manual_clock(world.app, "2024-06-10T13:01Z")) for world in worlds
        ]
        ran: list[Outcome] = []
        while outcomes := list(chain(*pool.map(ManualClock.fire, clocks))):
            ran += [outcome for outcome in outcomes if isinstance(outcome, Ran)]

    assert sorted(slots_of(ran)) == slots[len(slots) - made_up :]
    assert rows(worlds[0]) == [NOON, *slots[len(slots) - made_up :]]
    assert rows(worlds[0], "missed") == slots[:missed]
    windows = sorted(window for job in jobs for window in job.windows if window not in before)
    assert [slot for _, slot in windows] == slots[len(slots) - made_up :]
    assert [begin for begin, _ in windows] == [NOON, *[slot for _, slot in windows]][:made_up]


def test_three_days_without_a_clock_are_no_dead_end(make_world: Callable[..., World]) -> None:
    world = make_world(TESTING=True)
    job = Recorder(world, schedule="* * * * *", catch_up="all", max_catch_up=100)
    with manual_clock(world.app, NOON - MINUTE) as clock:
        clock.move_to(NOON)
        clock.fire()
    back = NOON + timedelta(days=3, seconds=20)
    with manual_clock(world.app, back) as clock:
        assert len(slots_of(clock.fire())) == 100
        made_up = job.slots[1:]
        assert clock.fire() == []
        clock.tick("1m")
        assert len(clock.fire()) == 1

    newest = NOON + timedelta(days=3)
    assert made_up == every(MINUTE, newest - 100 * MINUTE, newest)
    assert rows(world, "missed") == every(MINUTE, made_up[0] - 101 * MINUTE, made_up[0] - MINUTE)
    job.assert_seamless((NOON - MINUTE).isoformat())
    assert stamps(world) == {NOON - MINUTE, NOON, back, back + MINUTE}


@pytest.mark.parametrize(
    ("catch_up", "slow_ran", "missed"),
    [("latest", [1, 4, 7], [2, 3, 5, 6]), ("all", [1, 2, 3], [])],
)
def test_a_run_of_three_hours_costs_another_job_no_slot_and_its_own_are_accounted_for(
    make_world: Callable[..., World], catch_up: str, slow_ran: list[int], missed: list[int]
) -> None:
    """The clock goes a minute at a time; each time a thread of its own fires what is open."""
    world = make_world(TESTING=True)
    fast_ran, over = Semaphore(0), Event()
    fast = Recorder(world, "fast", fast_ran.release, schedule="* * * * *")

    def take_three_hours() -> None:
        end = clock.now() + 3 * HOUR
        while len(slow.windows) < 3 and clock.now() < end and not over.wait(0.005):
            pass

    slow = Recorder(world, "slow", take_three_hours, schedule="0 * * * *", catch_up=catch_up)
    fired: list[Future[list[Outcome]]] = []
    with (
        manual_clock(world.app, "2024-06-10T00:00Z") as clock,
        ThreadPoolExecutor(4) as pool,
    ):
        try:
            while len(slow.windows) < 3 and clock.now() < at("2024-06-10T10:00Z"):
                minute = clock.tick("1m")
                tries = 0
                while fast.slots[-1:] != [minute]:
                    fired.append(pool.submit(clock.fire))
                    fast_ran.acquire(timeout=0.05)
                    assert (tries := tries + 1) < 400, f"nothing ran at {minute}"
        finally:
            over.set()
    outcomes = [outcome for future in fired for outcome in future.result()]

    assert slots_of(outcomes)
    midnight = at("2024-06-10T00:00Z")
    assert fast.slots == rows(world, job="fast") == every(MINUTE, midnight, fast.slots[-1])
    assert rows(world, "missed", "fast") == []
    assert slow.slots == rows(world, job="slow")
    assert slow.slots[:3] == [midnight + hour * HOUR for hour in slow_ran]
    assert rows(world, "missed", "slow") == [midnight + hour * HOUR for hour in missed]
    slow.assert_seamless("2024-06-10T00:00Z")
    fast.assert_seamless("2024-06-10T00:00Z")
