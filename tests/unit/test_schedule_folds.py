"""Clocks that go back: a time that occurs twice, half hours, midnights, yesterday again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock.schedule import CronSchedule
from tests.support.slots import at, between, named


@pytest.mark.parametrize(
    ("zone", "expression", "first_pass", "second_pass"),
    [
        ("Europe/Berlin", "30 2 * * *", "2024-10-27T00:30Z", "2024-10-27T01:30Z"),
        ("America/New_York", "30 1 * * *", "2024-11-03T05:30Z", "2024-11-03T06:30Z"),
        ("Australia/Lord_Howe", "45 1 * * *", "2024-04-06T14:45Z", "2024-04-06T15:15Z"),
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-18T01:30Z", "2018-02-18T02:30Z"),
        ("Asia/Almaty", "30 23 29 2 *", "2024-02-29T17:30Z", "2024-02-29T18:30Z"),
        ("Europe/Dublin", "30 1 * * *", "2024-10-27T00:30Z", "2024-10-27T01:30Z"),
        ("Antarctica/Troll", "30 1 * * *", "2024-10-26T23:30Z", "2024-10-27T01:30Z"),
    ],
)
def test_a_daily_time_that_occurs_twice_runs_at_its_first_pass_only(
    zone, expression, first_pass, second_pass
):
    schedule = CronSchedule(expression, zone)
    slot = named(schedule, at(first_pass))
    assert slot is not None
    assert slot.at.fold == 0
    assert named(schedule, at(second_pass)) is None
    for hit in (at(second_pass), at(second_pass) + timedelta(minutes=1)):
        assert schedule.newest(hit) == slot
    assert schedule.next(slot.at).at.astimezone(UTC) - at(first_pass) > timedelta(hours=24)


def test_a_hit_in_the_second_pass_may_come_in_the_schedules_own_zone():
    schedule = CronSchedule("30 2 * * *", "Europe/Berlin")
    hit = datetime(2024, 10, 27, 2, 15, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert schedule.newest(hit).key == "2024-10-27T02:30"
    assert schedule.newest(hit.replace(fold=0)).key == "2024-10-26T02:30"
    assert named(schedule, hit.replace(minute=30)) is None
    assert named(schedule, hit.replace(minute=30, fold=0)).key == "2024-10-27T02:30"


def test_midnight_comes_after_the_clock_went_back_over_it():
    sao_paulo = CronSchedule("0 0 * * *", "America/Sao_Paulo")
    assert sao_paulo.next(at("2018-02-17T00:05-02:00")).at == at("2018-02-18T03:00Z")
    almaty = CronSchedule("0 0 1 * *", "Asia/Almaty")
    assert almaty.next(at("2024-02-15T00:00Z")).at == at("2024-02-29T19:00Z")


def test_every_half_hour_goes_on_through_both_passes_of_a_fold():
    schedule = CronSchedule("*/30 * * * *", "Europe/Berlin")
    assert between(schedule, "2024-10-27T00:00Z", "2024-10-27T02:00Z") == [
        at(f"2024-10-27T{time}Z") for time in ("00:00", "00:30", "01:00", "01:30", "02:00")
    ]
    slots = schedule.upcoming(at("2024-10-27T00:00Z"), 3)
    assert [slot.at.isoformat() for slot in slots] == [
        "2024-10-27T02:30:00+02:00",
        "2024-10-27T02:00:00+01:00",
        "2024-10-27T02:30:00+01:00",
    ]
    assert schedule.interval(slots[0]) == timedelta(minutes=30)


def test_half_an_hour_is_repeated_on_lord_howe():
    schedule = CronSchedule("*/15 * * * *", "Australia/Lord_Howe")
    assert between(schedule, "2024-04-06T14:30Z", "2024-04-06T15:30Z") == [
        at(f"2024-04-06T{time}Z") for time in ("14:30", "14:45", "15:00", "15:15", "15:30")
    ]


def test_an_hour_before_midnight_is_repeated_in_almaty():
    schedule = CronSchedule("*/30 * * * *", "Asia/Almaty")
    assert between(schedule, "2024-02-29T17:00Z", "2024-02-29T19:00Z") == [
        at(f"2024-02-29T{time}Z") for time in ("17:00", "17:30", "18:00", "18:30", "19:00")
    ]


def test_a_fold_over_midnight_returns_to_yesterdays_date():
    schedule = CronSchedule("*/20 * * * 6", "America/St_Johns")  # 0:01 on Sunday was 23:01 again.
    assert between(schedule, "2010-11-07T01:00Z", "2010-11-07T04:00Z") == [
        at(f"2010-11-07T{time}Z") for time in ("01:10", "01:30", "01:50", "02:10", "02:50", "03:10")
    ]


def test_midnight_before_a_fold_over_it_is_the_newest_slot_on_yesterdays_second_evening():
    daily = CronSchedule("0 0 * * *", "America/St_Johns")
    assert named(daily, at("2010-11-07T02:30Z")).key == "2010-11-07T00:00"
    assert daily.newest(at("2010-11-07T03:00Z")).key == "2010-11-07T00:00"  # 23:30 on Saturday
    assert named(daily, at("2010-11-07T03:30Z")) is None
    saturdays = CronSchedule("*/20 * * * 6", "America/St_Johns")
    slot = saturdays.next(at("2010-11-07T02:30:30Z"))  # from the first half minute of Sunday
    assert slot.at.astimezone(UTC) == at("2010-11-07T02:50Z")


def test_every_minute_is_a_minute_after_the_last_in_the_second_pass():
    schedule = CronSchedule("* * * * *", "America/New_York")
    slot = schedule.next(at("2026-11-01T06:30:15Z"))
    assert slot.at.astimezone(UTC) == at("2026-11-01T06:31Z")
    assert slot.at.isoformat() == "2026-11-01T01:31:00-05:00"
