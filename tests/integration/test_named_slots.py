"""A request that names its slot: which one it runs; and slots that nobody uses up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock import Run

from ..support.commands import cron, fails
from ..support.named import HEADER, post, refuses, told
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

DAY = timedelta(days=1)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(CRONLOCK_SLOT_HEADER=HEADER)


def newest_slot(world: World, hours_ahead: int = 12) -> datetime:
    """Return the newest slot of a daily job whose next is so many hours ahead, or one less."""
    now = world.database.value("SELECT now()")
    coming: datetime = (now + timedelta(hours=hours_ahead)).astimezone(UTC)
    return coming.replace(minute=0, second=0, microsecond=0) - DAY


def daily(world: World, newest: datetime, **how: Any) -> list[datetime | None]:
    """Register the job ``x``, which has a slot a day after *newest*; return those it is handed."""
    slots: list[datetime | None] = []

    @world.cron.job("x", schedule=f"0 {newest.hour} * * *", tz="UTC", **how)
    def x(run: Run) -> None:
        slots.append(run.slot)

    return slots


def test_without_a_name_the_newest_slot_is_run(world: World) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest, max_lateness="48h")

    assert told(world.post("x")) == "ran"
    assert slots == [newest]


def test_the_named_slot_is_run_once_and_the_newest_still_runs(world: World) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest, max_lateness="48h")

    first = post(world, newest - DAY)
    assert (told(first), first.status_code) == ("ran", 200)
    assert datetime.fromisoformat(first.json["slot"]) == newest - DAY
    assert datetime.fromisoformat(first.json["next_slot"]) == newest
    assert told(world.post("x")) == "ran"
    assert told(post(world, newest - DAY)) == told(post(world, newest)) == "already ran"

    assert slots == [newest - DAY, newest]
    assert sorted(key for _, key, _ in world.runs()) == [f"{slot:%Y-%m-%dT%H:%M}" for slot in slots]


def test_a_late_retry_runs_the_slot_that_failed_and_not_the_newest(world: World) -> None:
    newest = newest_slot(world)
    slots: list[datetime | None] = []

    @world.cron.job("x", schedule=f"0 {newest.hour} * * *", tz="UTC", max_lateness="48h")
    def fails_at_first(run: Run) -> None:
        slots.append(run.slot)
        if len(slots) == 1:
            raise ValueError("not yet")

    failed = post(world, newest - DAY)
    retried = post(world, newest - DAY)

    assert (failed.status_code, told(retried)) == (500, "ran")
    assert told(world.post("x")) == "ran"
    assert slots == [newest - DAY, newest - DAY, newest]


def test_a_slot_beyond_max_lateness_is_too_late_and_takes_nothing_from_the_newest(
    world: World,
) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest, max_lateness="20h")

    late = post(world, newest - DAY)

    assert (late.status_code, told(late)) == (200, "too late")
    assert datetime.fromisoformat(late.json["slot"]) == newest - DAY
    assert world.runs() == world.attempts() == []
    assert told(world.post("x")) == "ran"
    assert slots == [newest]


def test_without_max_lateness_only_the_newest_slot_may_be_named(world: World) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest)

    assert told(post(world, newest - DAY)) == "too late"
    assert told(post(world, newest)) == "ran"
    assert slots == [newest]


@pytest.mark.parametrize("off", [-5, -0.000001, 0.123456, 2, 5])
def test_a_time_close_to_a_slot_is_that_slot(world: World, off: float) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest)

    assert told(post(world, newest + timedelta(seconds=off))) == "ran"
    assert told(post(world, newest)) == told(world.post("x")) == "already ran"
    assert slots == [newest]


@pytest.mark.parametrize("off", [timedelta(minutes=3), timedelta(seconds=-6), timedelta(hours=-1)])
def test_a_time_off_the_grid_is_refused(world: World, off: timedelta) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest, max_lateness="48h")

    refuses(world, post(world, newest + off))
    assert slots == []


def test_one_slot_may_be_named_in_any_offset_by_many_at_once_and_runs_once(world: World) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest, max_lateness="48h")
    zones = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]
    names = [(newest - DAY).astimezone(ZoneInfo(zone)).isoformat() for zone in zones]
    names += [names[0].replace("+00:00", "Z"), names[0].replace("+00:00", "z").lower()]

    with ThreadPoolExecutor(len(names)) as pool:
        answers = [told(answer) for answer in pool.map(lambda name: post(world, name), names)]

    assert answers.count("ran") == 1
    assert set(answers) <= {"ran", "already ran", "already running"}
    assert slots == [newest - DAY]
    assert [told(post(world, name)) for name in names] == ["already ran"] * len(names)


def test_a_slot_in_the_future_is_refused_and_is_there_when_its_time_has_come(
    make_world: Callable[..., World],
) -> None:
    early, due = (
        make_world(CRONLOCK_SLOT_HEADER=HEADER, CRONLOCK_EARLY=length) for length in ("5s", "11h")
    )
    newest = newest_slot(early, hours_ahead=6)
    slots, due_slots = (daily(world, newest) for world in (early, due))

    for _ in range(2):
        refuses(early, post(early, newest + DAY))
    for ahead in (2 * DAY, 20_000 * DAY, 2_000_000 * DAY):
        refuses(early, post(early, newest + ahead))
    assert slots == []
    # With EARLY of 11 hours the time of the same slot has come.
    assert told(post(due, newest + DAY)) == "ran"
    assert due_slots == [newest + DAY]


def test_forced_runs_of_the_command_line_use_up_no_slot(world: World) -> None:
    newest = newest_slot(world)
    slots = daily(world, newest)

    for _ in range(2):
        assert cron(world, "run", "x", "--force").exit_code == 0
    future = (newest + DAY).isoformat()
    fails(cron(world, "run", "x", "--force", "--slot", future), 2, "is in the future")

    assert [(key, state) for _, key, state in world.runs()] == [(None, "done")] * 2
    assert told(post(world, newest)) == "ran"
    assert slots == [newest] * 3
