"""Hits and clocks that come late, too late, or before their time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from flask_cronlock.testing import manual_clock

from ..support.commands import cron, fails
from ..support.named import HEADER, post, told
from ..support.slots import at
from ..support.time_travel import Recorder, instants, rows, slots_of, stamps
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

MONDAY, TUESDAY = "2024-06-10T07:00Z", "2024-06-11T07:00Z"


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True, CRONLOCK_SLOT_HEADER=HEADER)


def fails_once() -> Callable[[], Any]:
    calls: list[bool] = []

    def work() -> None:
        calls.append(True)
        if len(calls) == 1:
            raise ValueError("not yet")

    return work


@pytest.mark.parametrize(
    ("max_lateness", "mondays", "ran"),
    [("20h", "too late", [TUESDAY]), ("48h", "ran", [MONDAY, TUESDAY])],
)
def test_a_retry_on_tuesday_is_for_monday_as_far_as_its_lateness_goes(
    world: World, max_lateness: str, mondays: str, ran: list[str]
) -> None:
    job = Recorder(
        world, schedule="0 7 * * *", max_lateness=max_lateness, work=fails_once(), timeout="50s"
    )
    with manual_clock(world.app, MONDAY) as clock:
        assert post(world, at(MONDAY)).status_code == 500
        clock.move_to("2024-06-11T07:00:01Z")
        answers = [told(post(world, at(MONDAY))), told(world.post("x"))]
        again = [told(post(world, at(MONDAY))), told(world.post("x"))]

    assert answers == [mondays, "ran"]
    assert again == [mondays.replace("ran", "already ran"), "already ran"]
    assert job.slots == instants(MONDAY, *ran)
    assert rows(world) == instants(*ran)
    assert stamps(world) == instants_set(MONDAY, "2024-06-11T07:00:01Z")


def instants_set(*texts: str) -> set[Any]:
    return set(instants(*texts))


@pytest.mark.parametrize("named", ["2024-06-11T07:03:00Z", "2024-06-12T07:00:00Z"])
def test_what_is_off_the_grid_or_yet_to_come_is_refused_and_leaves_nothing(
    world: World, named: str
) -> None:
    job = Recorder(world, schedule="0 7 * * *", max_lateness="48h")
    with manual_clock(world.app, "2024-06-11T07:05Z"):
        assert post(world, named).status_code == 400

    assert job.slots == world.runs() == world.attempts() == []


def test_a_run_by_hand_the_day_before_leaves_tomorrows_slot_alone(world: World) -> None:
    job = Recorder(world, schedule="0 7 * * *")
    with manual_clock(world.app, "2024-06-10T15:00Z") as clock:
        assert post(world, "2024-06-11T07:00:00Z").status_code == 400
        for _ in range(2):
            assert cron(world, "run", "x", "--force").exit_code == 0
        fails(cron(world, "run", "x", "--slot", "2024-06-11T07:00Z"), 2, "is in the future")
        assert world.runs() == [("x", None, "done")] * 2
        clock.move_to(TUESDAY)
        assert told(post(world, "2024-06-11T07:00:00Z")) == "ran"
        assert told(world.post("x")) == "already ran"

    assert job.slots == instants(MONDAY, MONDAY, TUESDAY)
    assert world.runs()[-1] == ("x", "2024-06-11T07:00", "done")


@pytest.mark.parametrize(
    "late", [timedelta(seconds=1.8), timedelta(seconds=59), timedelta(hours=4, minutes=59)]
)
def test_a_clock_that_wakes_late_still_fires_the_slot_and_its_lateness_is_kept(
    world: World, late: timedelta
) -> None:
    Recorder(world, schedule="0 */5 * * *")
    with manual_clock(world.app, "2024-06-10T09:59Z") as clock:
        clock.move_to(at("2024-06-10T10:00Z") + late)
        outcomes = clock.fire()

    assert slots_of(outcomes) == instants("2024-06-10T10:00Z")
    assert world.database.value("SELECT started_at - scheduled_at FROM cronlock_run") == late
    assert world.database.value("SELECT trigger FROM cronlock_run") == "clock"
