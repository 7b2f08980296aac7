"""What the fields mean, and how slots are named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock.schedule import CronSchedule, EverySchedule, Schedule, Slot
from tests.support.slots import at, named


def next_slots(schedule: Schedule, after: str, count: int = 1) -> list[datetime]:
    return [slot.at.astimezone(UTC) for slot in schedule.upcoming(at(after), count)]


# --- what the fields mean ------------------------------------------------------------------------


def test_weekday_2_is_tuesday():
    schedule = CronSchedule("0 18 * * 2", "UTC")
    assert next_slots(schedule, "2026-08-01T00:00Z", 2) == [
        at("2026-08-04T18:00Z"),
        at("2026-08-11T18:00Z"),
    ]


def test_a_day_of_month_and_a_weekday_that_are_both_set_are_either_or_and_say_so():
    schedule = CronSchedule("0 0 13 * 5", "UTC")
    assert next_slots(schedule, "2026-10-08T00:00Z", 3) == [
        at("2026-10-09T00:00Z"),  # a Friday
        at("2026-10-13T00:00Z"),  # a Tuesday
        at("2026-10-16T00:00Z"),
    ]
    assert schedule.hints == (
        "day-of-month and day-of-week are both set: a day that matches either is taken",
    )


def test_every_50th_minute_is_two_minutes_of_each_hour_and_says_so():
    schedule = CronSchedule("*/50 * * * *", "UTC")
    assert next_slots(schedule, "2026-08-01T00:00Z", 3) == [
        at("2026-08-01T00:50Z"),
        at("2026-08-01T01:00Z"),
        at("2026-08-01T01:50Z"),
    ]
    assert schedule.hints == ("*/50 starts again every hour: it is not every 50 minutes",)
    assert CronSchedule("0 */5 * * *", "UTC").hints == (
        "*/5 starts again every day: it is not every 5 hours",
    )
    assert CronSchedule("*/15 */6 * * *", "UTC").hints == ()


def test_the_31st_leaves_out_short_months():
    schedule = CronSchedule("0 0 31 * *", "UTC")
    assert [when.month for when in next_slots(schedule, "2026-01-01T00:00Z", 7)] == [
        1, 3, 5, 7, 8, 10, 12,
    ]  # fmt: skip


def test_the_last_day_of_a_month_is_l():
    schedule = CronSchedule("59 23 L * *", "Europe/Helsinki")
    assert next_slots(schedule, "2024-03-20T10:13:14Z", 2) == [
        at("2024-03-31T20:59Z"),
        at("2024-04-30T20:59Z"),
    ]


def test_a_day_begins_by_the_clock_of_the_schedules_zone():
    schedule = CronSchedule("0 5 * * *", "Asia/Kathmandu")
    slot = schedule.newest(at("2024-05-01T23:15:02Z"))
    assert slot.key == "2024-05-02T05:00"
    assert slot.at == at("2024-05-01T23:15Z")
    assert schedule.newest(at("2024-05-02T00:10Z")) == slot  # The date in UTC is another by then.
    assert schedule.newest(at("2024-05-01T23:14:59Z")).key == "2024-05-01T05:00"


# --- slots and their names -----------------------------------------------------------------------


def test_a_fixed_time_slot_is_named_by_its_local_label():
    berlin = ZoneInfo("Europe/Berlin")
    slot = CronSchedule("0 7 * * *", "Europe/Berlin").next(at("2026-07-01T00:00Z"))
    assert slot == Slot("2026-07-01T07:00", datetime(2026, 7, 1, 7, tzinfo=berlin))
    assert slot.at.isoformat() == "2026-07-01T07:00:00+02:00"
    assert slot.at.tzinfo is berlin


@pytest.mark.parametrize("expression", ["*/15 7 * * *", "0 * * * *", "*/15 * * * *"])
def test_a_slot_that_follows_elapsed_time_is_named_by_its_utc_instant(expression):
    slot = CronSchedule(expression, "Europe/Berlin").next(at("2026-07-01T04:59Z"))
    assert slot.key == "2026-07-01T05:00Z"
    assert slot.at.isoformat() == "2026-07-01T07:00:00+02:00"


def test_a_slot_is_named_by_its_exact_instant_in_any_zone_and_by_no_other():
    schedule = CronSchedule("0 7 * * *", "UTC")
    slot = named(schedule, at("2026-08-03T07:00Z"))
    assert slot is not None
    assert slot.key == "2026-08-03T07:00"
    assert named(schedule, datetime.fromisoformat("2026-08-03T12:45+05:45")) == slot
    assert named(schedule, at("2026-08-03T07:03Z")) is None
    assert named(schedule, at("2026-08-03T07:00:00.000001Z")) is None


def test_parts_of_a_second_decide_between_two_slots():
    schedule = CronSchedule("* * * * *", "UTC")
    noon, tick = at("2026-08-03T12:00Z"), timedelta(microseconds=1)
    assert schedule.newest(noon - tick).at == noon - timedelta(minutes=1)
    assert schedule.newest(noon).at == schedule.newest(noon + tick).at == noon
    assert schedule.next(noon - tick).at == noon
    assert schedule.next(noon).at == schedule.next(noon + tick).at == noon + timedelta(minutes=1)


def test_the_slots_before_and_after_and_the_interval_belong_together():
    schedule = CronSchedule("0 6 * * 1", "Europe/Prague")
    slot = named(schedule, at("2026-08-03T04:00Z"))
    assert schedule.previous(slot).at == at("2026-07-27T04:00Z")
    assert schedule.next(slot.at).at == at("2026-08-10T04:00Z")
    assert schedule.interval(slot) == timedelta(days=7)


def test_slots_begin_in_1970_and_end_with_9998():
    schedule = CronSchedule("0 0 * * *", "Europe/Berlin")
    first = schedule.next(datetime.min.replace(tzinfo=timezone(timedelta(hours=14))))
    assert first.key == "1970-01-01T00:00"
    assert schedule.previous(first) is None
    assert schedule.newest(first.at - timedelta(seconds=1)) is None
    latest = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))
    assert schedule.newest(latest).key == "9998-12-31T00:00"
    assert named(schedule, latest) is None
    with pytest.raises(OverflowError, match=r"^0 0 .* Europe/Berlin has no slot later than"):
        schedule.next(latest)


def test_every_counts_whole_intervals_from_1970_in_utc():
    schedule = EverySchedule("7m")
    slot = schedule.newest(at("1970-01-01T00:20:59Z"))
    assert slot == Slot("1970-01-01T00:14Z", at("1970-01-01T00:14Z"))
    assert slot.at.tzinfo is UTC
    assert schedule.next(slot.at).key == "1970-01-01T00:21Z"
    assert schedule.previous(slot).key == "1970-01-01T00:07Z"
    assert schedule.interval(slot) == timedelta(minutes=7)
    assert named(schedule, at("1970-01-01T00:14Z")) == slot
    assert named(schedule, at("1970-01-01T00:15Z")) is None


def test_every_names_seconds_where_there_are_any():
    keys = [slot.key for slot in EverySchedule("30s").upcoming(at("2026-01-01T00:00Z"), 2)]
    assert keys == ["2026-01-01T00:00:30Z", "2026-01-01T00:01Z"]


def test_every_begins_with_1970_and_ends_before_the_calendar_does():
    schedule = EverySchedule("1d")
    assert schedule.next(datetime.min.replace(tzinfo=UTC)).key == "1970-01-01T00:00Z"
    assert schedule.newest(at("1969-12-31T23:59:59Z")) is None
    assert named(schedule, datetime.max.replace(tzinfo=UTC)) is None
    with pytest.raises(OverflowError):
        schedule.next(datetime.max.replace(tzinfo=UTC))


def test_a_schedule_reads_as_it_was_written():
    assert str(CronSchedule(" 0  7 * *\tMON ", "Europe/Berlin")) == "0 7 * * MON Europe/Berlin"
    assert str(EverySchedule(timedelta(minutes=15))) == "every 15m"
