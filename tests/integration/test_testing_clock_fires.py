"""What a manual clock fires: all that has become open, nothing twice, nothing for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from flask_cronlock import Failed, Ran, Reason, Run
from flask_cronlock.testing import manual_clock

from ..support.outcomes import error_of, reason_of
from ..support.time_travel import DAY, SEVEN, START, Recorder, fail, slots_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True)


def test_fire_runs_what_has_become_open_and_nothing_twice(world: World) -> None:
    hourly = Recorder(world, "a", schedule="0 * * * *")
    daily = Recorder(world, "b", schedule="0 7 * * *")
    every_slot = Recorder(world, "c", schedule="*/15 * * * *", catch_up="all")
    Recorder(world, "d", fail, schedule="0 7 1 1 *")
    world.cron.job("e")(fail)

    with manual_clock(world.app, START) as clock:
        assert clock.fire() == []
        clock.tick("10s")
        assert [outcome.job for outcome in clock.fire()] == ["a", "b", "c"]
        clock.tick("1h")
        assert [outcome.job for outcome in clock.fire()] == ["c", "c", "c", "a", "c"]
        assert clock.fire() == []

    hour = timedelta(hours=1)
    assert hourly.slots == [SEVEN, SEVEN + hour]
    assert daily.slots == [SEVEN]
    assert every_slot.slots == [SEVEN + number * hour / 4 for number in range(5)]


def test_fire_catches_up_nothing_from_before_the_clock(world: World) -> None:
    Recorder(world, schedule="0 7 * * *")
    with manual_clock(world.app, "2024-06-10T07:00:01Z") as clock:
        assert clock.fire() == []


def test_a_failed_run_is_fired_again_once_its_time_to_be_tried_again_has_come(
    world: World,
) -> None:
    world.cron.job("x", schedule="0 7 * * *")(fail)
    waits = ["1s", "5s", "30s", "2m", "10m"]

    with manual_clock(world.app, START) as clock:
        clock.move_to(SEVEN)
        assert str(error_of(clock.fire()[0])) == "no"
        for wait in waits:
            assert clock.fire() == []
            clock.tick(wait)
            (outcome,) = clock.fire()
            error_of(outcome)
        clock.tick("6h")
        assert clock.fire() == []

    assert len(world.attempts()) == 1 + len(waits)
    assert world.runs() == []


def test_a_slot_that_fails_does_not_stand_in_the_way_of_those_after_it(world: World) -> None:
    @world.cron.job("x", schedule="*/15 * * * *", catch_up="all")
    def x(run: Run) -> None:
        assert run.slot != SEVEN

    with manual_clock(world.app, START) as clock:
        clock.tick("31m")
        assert [type(outcome) for outcome in clock.fire()] == [Failed, Ran, Ran]
        clock.tick("1s")
        assert [outcome.slot for outcome in clock.fire()] == [SEVEN]

    assert len(world.attempts()) == 2


def test_a_job_that_moves_the_clock_past_its_next_slot_does_not_run_for_ever(
    world: World,
) -> None:
    job = Recorder(
        world, work=lambda: len(job.slots) < 9 and clock.tick("3h"), schedule="0 * * * *"
    )

    with manual_clock(world.app, START) as clock:
        clock.move_to(SEVEN)
        assert len(clock.fire()) == 1
        assert len(clock.fire()) == 1

    assert job.slots == [SEVEN, SEVEN + timedelta(hours=3)]


def test_a_paused_job_and_a_disabled_app_are_told_or_passed_over_but_end(
    make_world: Callable[..., World], world: World
) -> None:
    Recorder(world, schedule="0 7 * * *")
    disabled = make_world(TESTING=True, CRONLOCK_ENABLED=False, CRONLOCK_NAMESPACE="other")
    for number in range(40):
        Recorder(disabled, f"x{number}", schedule="0 7 * * *")

    with (
        manual_clock(world.app, START) as clock,
        manual_clock(disabled.app, START) as disabled_clock,
    ):
        world.database.query("UPDATE cronlock_job SET paused_at = known_since WHERE namespace = ''")
        clock.move_to(SEVEN)
        disabled_clock.move_to(SEVEN)
        assert clock.fire() == []
        assert [reason_of(told) for told in disabled_clock.fire()] == [Reason.PAUSED] * 40
        world.database.query("UPDATE cronlock_job SET paused_at = NULL")
        assert slots_of(clock.fire()) == [SEVEN]


def test_two_apps_on_one_database_have_clocks_of_their_own(
    make_world: Callable[..., World],
) -> None:
    worlds = [make_world(TESTING=True) for _ in range(2)]
    for world in worlds:
        Recorder(world, schedule="0 7 * * *")

    with manual_clock(worlds[0].app, SEVEN), manual_clock(worlds[1].app, SEVEN + DAY):
        outcomes = [world.run("x") for world in worlds]

    assert slots_of(outcomes) == [SEVEN, SEVEN + DAY]
