"""Nights on which clocks change, lived through hit by hit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock import Ran
from flask_cronlock.dues import _retry_in
from flask_cronlock.testing import ManualClock, manual_clock

from ..support.outcomes import value_of
from ..support.slots import at
from ..support.time_travel import Recorder, instants, keys, posts, rows, slots_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

HOUR = timedelta(hours=1)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True)


@pytest.fixture
def at_time(world: World) -> Iterator[Callable[[str], ManualClock]]:
    """Make the world's clock, once its jobs are there."""
    with ExitStack() as stack:
        yield lambda start: stack.enter_context(manual_clock(world.app, start))


def on_local_date(job: Recorder, date: str, zone: str) -> int:
    """Return how often the job ran for that date in its zone."""
    return [f"{slot.astimezone(ZoneInfo(zone)):%Y-%m-%d}" for slot in job.slots].count(date)


@pytest.mark.parametrize(
    ("zone", "date", "before", "slot", "after"),
    [
        (
            "Europe/Berlin",
            "2024-03-31",
            "2024-03-30T01:30Z",
            "2024-03-31T01:00Z",
            "2024-04-01T00:30Z",
        ),
        (
            "America/New_York",
            "2024-03-10",
            "2024-03-09T07:30Z",
            "2024-03-10T07:00Z",
            "2024-03-11T06:30Z",
        ),
    ],
)
def test_a_daily_time_that_the_clock_jumps_over_runs_once_on_that_date(
    world: World,
    at_time: Callable[[str], ManualClock],
    zone: str,
    date: str,
    before: str,
    slot: str,
    after: str,
) -> None:
    job = Recorder(world, schedule="30 2 * * *", tz=zone)
    clock = at_time(before)
    assert posts(world, clock, before) == ["ran"]
    clock.move_to(at(slot) - HOUR)
    assert posts(world, clock, clock.now().isoformat()) == ["already ran"]

    moments = [at(slot), at(slot) + HOUR / 2, at(slot) + HOUR]
    told = posts(world, clock, *[moment.isoformat() for moment in moments])

    assert told == ["ran", "already ran", "already ran"]
    assert on_local_date(job, date, zone) == 1
    assert posts(world, clock, after) == ["ran"]
    assert job.slots == rows(world) == instants(before, slot, after)
    assert f"{date}T02:30" in keys(world)


def test_a_hit_an_hour_before_a_jumped_slot_is_for_the_day_before(
    world: World, at_time: Callable[[str], ManualClock]
) -> None:
    job = Recorder(world, schedule="30 2 * * *", tz="Europe/Berlin")
    clock = at_time("2024-03-31T00:00Z")
    hours = ["2024-03-31T00:00Z", "2024-03-31T01:00Z", "2024-03-31T01:30Z", "2024-03-31T02:00Z"]

    assert posts(world, clock, *hours) == ["ran", "ran", "already ran", "already ran"]
    assert job.slots == instants("2024-03-30T01:30Z", "2024-03-31T01:00Z")
    assert on_local_date(job, "2024-03-31", "Europe/Berlin") == 1
    job.assert_seamless("2024-03-29T01:30Z")


@pytest.mark.parametrize(
    ("schedule", "zone", "moments", "slot"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            ["2024-10-27T00:30Z", "2024-10-27T01:30Z", "2024-10-27T01:31Z"],
            "2024-10-27T02:30:00+02:00",
        ),
        (
            "30 1 * * *",
            "America/New_York",
            ["2024-11-03T05:30Z", "2024-11-03T06:30Z"],
            "2024-11-03T01:30:00-04:00",
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            ["2024-04-06T14:45Z", "2024-04-06T15:15Z"],
            "2024-04-07T01:45:00+11:00",
        ),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            ["2018-02-18T01:30Z", "2018-02-18T02:30Z"],
            "2018-02-17T23:30:00-02:00",
        ),
        (
            "30 23 29 2 *",
            "Asia/Almaty",
            ["2024-02-29T17:30Z", "2024-02-29T18:30Z"],
            "2024-02-29T23:30:00+06:00",
        ),
    ],
)
def test_a_fixed_time_that_comes_twice_runs_at_the_first_pass_only(
    world: World,
    at_time: Callable[[str], ManualClock],
    schedule: str,
    zone: str,
    moments: list[str],
    slot: str,
) -> None:
    job = Recorder(world, schedule=schedule, tz=zone)
    clock = at_time(moments[0])

    first = world.post("x").json
    later = posts(world, clock, *moments[1:])

    assert (first["outcome"], first["slot"]) == ("ran", slot)
    assert later == ["already ran"] * (len(moments) - 1)
    assert job.slots == rows(world) == instants(moments[0])


@pytest.mark.parametrize(
    ("schedule", "zone", "slots"),
    [
        ("*/30 * * * *", "Europe/Berlin", ("2024-10-27T00:00Z", 30)),
        ("*/30 * * * *", "Europe/Berlin", ("2024-03-31T00:00Z", 30)),
        ("*/15 * * * *", "Australia/Lord_Howe", ("2024-04-06T14:30Z", 15)),
        ("*/30 * * * *", "Asia/Almaty", ("2024-02-29T17:00Z", 30)),
    ],
)
def test_a_schedule_of_every_so_many_minutes_neither_rests_nor_repeats(
    world: World,
    at_time: Callable[[str], ManualClock],
    schedule: str,
    zone: str,
    slots: tuple[str, int],
) -> None:
    job = Recorder(world, schedule=schedule, tz=zone)
    begin, step = at(slots[0]), timedelta(minutes=slots[1])
    moments = [begin + number * step for number in range(5)]
    clock = at_time(slots[0])

    for moment in moments:
        clock.move_to(moment)
        assert value_of(world.run("x")) is None
        assert posts(world, clock, (moment + step / 2).isoformat()) == ["already ran"]

    assert job.slots == rows(world) == moments
    assert len(set(keys(world))) == 5
    job.assert_seamless((begin - step).isoformat())


def test_an_hourly_job_leaves_out_the_hour_that_lord_howe_jumps_into(
    world: World, at_time: Callable[[str], ManualClock]
) -> None:
    job = Recorder(world, schedule="0 * * * *", tz="Australia/Lord_Howe")
    clock = at_time("2024-10-05T14:30Z")

    told = posts(
        world, clock, "2024-10-05T14:30Z", "2024-10-05T15:30Z", "2024-10-05T15:59Z"
    ) + posts(world, clock, "2024-10-05T16:00Z", "2024-10-05T16:29Z")

    assert told == ["ran", "already ran", "already ran", "ran", "already ran"]
    assert job.windows[-1] == (at("2024-10-05T14:30Z"), at("2024-10-05T16:00Z"))


@pytest.mark.parametrize("schedule", ["0 2 * * *", "15 2 * * *"])
def test_times_within_lord_howes_jump_run_right_after_it(
    world: World, at_time: Callable[[str], ManualClock], schedule: str
) -> None:
    job = Recorder(world, schedule=schedule, tz="Australia/Lord_Howe")
    clock = at_time("2024-10-05T15:30Z")

    told = posts(world, clock, "2024-10-05T15:30Z", "2024-10-05T15:45Z", "2024-10-05T16:30Z")

    assert told == ["ran", "already ran", "already ran"]
    assert job.slots == instants("2024-10-05T15:30Z")


@pytest.mark.parametrize(
    ("schedule", "zone", "start", "slot"),
    [
        ("0 0 * * *", "America/Sao_Paulo", "2018-02-17T00:05-02:00", "2018-02-18T03:00Z"),
        ("0 0 1 * *", "Asia/Almaty", "2024-02-29T17:00Z", "2024-02-29T19:00Z"),
        ("0 0 1 1 *", "Asia/Kathmandu", "1985-12-31T17:00Z", "1985-12-31T18:30Z"),
    ],
)
def test_the_clock_waits_for_the_midnight_that_begins_the_date(
    world: World,
    at_time: Callable[[str], ManualClock],
    schedule: str,
    zone: str,
    start: str,
    slot: str,
) -> None:
    Recorder(world, schedule=schedule, tz=zone)
    clock = at_time(start)

    for minutes in (61, 60, 1):
        clock.move_to(at(slot) - timedelta(minutes=minutes))
        assert clock.fire() == []
    clock.move_to(slot)

    assert slots_of(clock.fire()) == rows(world) == instants(slot)


def test_a_local_morning_that_spans_two_utc_dates_is_one_day_whatever_the_zones_around_it(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"connect_args": {"options": "-c TimeZone=Asia/Kathmandu"}}
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/St_Johns")
        time.tzset()
        try:
            world = make_world(TESTING=True, engine_options=options)
            job = Recorder(world, schedule="0 5 * * *", tz="Asia/Kathmandu")
            with manual_clock(world.app, "2024-05-01T23:15:02Z") as clock:
                first = world.run("x")
                again = posts(world, clock, "2024-05-02T00:10:00Z")
        finally:
            patched.undo()
            time.tzset()

    assert value_of(first) is None
    assert again == ["already ran"]
    assert job.slots == instants("2024-05-01T23:15Z")
    (row,) = world.database.query(
        "SELECT scheduled_at, started_at, finished_at, slot_key FROM cronlock_run"
    )
    noted: list[datetime] = [at("2024-05-01T23:15Z"), *instants("2024-05-01T23:15:02Z") * 2]
    assert list(row) == [*noted, "2024-05-02T05:00"]


def test_times_of_the_database_are_reckoned_in_utc_whatever_its_sessions_zone(
    make_world: Callable[..., World],
) -> None:
    """Two times of one zone are an hour apart or none, where its clock goes back between them."""
    berlin = {"connect_args": {"options": "-c timezone=Europe/Berlin"}}
    world = make_world(engine_options=berlin)
    began: list[datetime] = []
    world.cron.job("x", every="1d")(lambda run: began.append(run.started_at))
    outcome = world.run("x")
    assert isinstance(outcome, Ran)
    assert began[0].tzinfo is UTC


def test_a_retry_comes_when_it_should_though_the_clock_went_back_meanwhile() -> None:
    failed = at("2026-10-25T00:59:59Z").astimezone(ZoneInfo("Europe/Berlin"))
    assert _retry_in(1, failed, at("2026-10-25T01:00:00Z")) == timedelta()
