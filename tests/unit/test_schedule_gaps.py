"""Clocks that go forward: gaps, missing midnights, missing days, and the days around them."""

from __future__ import annotations

from datetime import UTC, timedelta
from itertools import pairwise

from flask_cronlock.schedule import CronSchedule
from tests.support.slots import at, between, named


def one_a_day(schedule: CronSchedule, *expected: str) -> None:
    instants = [at(text) for text in expected]
    begin, end = instants[0] - timedelta(hours=1), instants[-1] + timedelta(hours=1)
    assert between(schedule, begin.isoformat(), end.isoformat()) == instants


def test_a_daily_time_inside_a_gap_runs_once_right_after_the_gap():
    berlin = CronSchedule("30 2 * * *", "Europe/Berlin")
    one_a_day(berlin, "2024-03-30T01:30Z", "2024-03-31T01:00Z", "2024-04-01T00:30Z")
    new_york = CronSchedule("30 2 * * *", "America/New_York")
    one_a_day(new_york, "2024-03-09T07:30Z", "2024-03-10T07:00Z", "2024-03-11T06:30Z")


def test_a_slot_moved_out_of_a_gap_keeps_its_label_and_shows_real_wall_time():
    slot = named(CronSchedule("30 2 * * *", "Europe/Berlin"), at("2024-03-31T01:00Z"))
    assert slot is not None
    assert slot.key == "2024-03-31T02:30"
    assert slot.at.isoformat() == "2024-03-31T03:00:00+02:00"


def test_a_late_hit_after_a_gap_belongs_to_the_slot_of_that_date():
    schedule = CronSchedule("30 2 * * *", "Europe/Berlin")
    for hit in ("01:00", "01:30", "02:00", "23:59"):
        assert schedule.newest(at(f"2024-03-31T{hit}Z")).key == "2024-03-31T02:30"
    assert schedule.newest(at("2024-03-31T00:00Z")).key == "2024-03-30T02:30"


def test_labels_that_fall_on_one_instant_are_one_slot_under_the_latest_label():
    berlin = CronSchedule("0 2,3 * * *", "Europe/Berlin")
    slots = berlin.upcoming(at("2024-03-30T01:30Z"), 3)
    assert [slot.key for slot in slots] == [
        "2024-03-30T03:00",
        "2024-03-31T03:00",
        "2024-04-01T02:00",
    ]
    assert slots[1].at == at("2024-03-31T01:00Z")
    assert berlin.previous(slots[1]) == slots[0]
    assert berlin.interval(slots[0]) == timedelta(hours=23)

    troll = CronSchedule("0,30 1-2 * * *", "Antarctica/Troll")  # Two hours are missing.
    assert [(slot.key, slot.at) for slot in troll.upcoming(at("2024-03-31T00:00Z"), 2)] == [
        ("2024-03-31T02:30", at("2024-03-31T01:00Z")),
        ("2024-04-01T01:00", at("2024-03-31T23:00Z")),
    ]


def test_a_midnight_that_does_not_exist_runs_when_the_date_begins():
    sao_paulo = CronSchedule("0 0 * * *", "America/Sao_Paulo")
    one_a_day(
        sao_paulo,
        *("2018-11-02T03:00Z", "2018-11-03T03:00Z", "2018-11-04T03:00Z", "2018-11-05T02:00Z"),
    )
    once_a_year = CronSchedule("0 1 4 11 *", "America/Sao_Paulo")
    assert once_a_year.next(at("2018-11-03T23:00-03:00")).at == at("2018-11-04T03:00Z")
    santiago = CronSchedule("0 0 * * 0", "America/Santiago")
    one_a_day(
        santiago,
        *("2022-08-28T04:00Z", "2022-09-04T04:00Z", "2022-09-11T04:00Z", "2022-09-18T03:00Z"),
    )
    cairo = CronSchedule("0 0 * * *", "Africa/Cairo")
    one_a_day(cairo, "2023-04-26T22:00Z", "2023-04-27T22:00Z", "2023-04-28T21:00Z")


def test_a_gap_of_a_quarter_hour_at_new_year_delays_the_year_to_its_first_instant():
    kathmandu = CronSchedule("0 0 1 1 *", "Asia/Kathmandu")
    slot = kathmandu.next(at("1985-06-01T00:00Z"))
    assert slot.key == "1986-01-01T00:00"
    assert slot.at == at("1985-12-31T18:30Z")
    assert slot.at.isoformat() == "1986-01-01T00:15:00+05:45"


def test_a_gap_that_ends_within_a_minute_is_left_at_its_very_end():
    monrovia = CronSchedule("30 0 * * *", "Africa/Monrovia")  # From -00:44:30 to UTC.
    slot = monrovia.next(at("1972-01-07T00:00Z"))
    assert slot.key == "1972-01-07T00:30"
    assert slot.at == at("1972-01-07T00:44:30Z")


def test_a_date_that_is_left_out_has_no_slot():
    daily = CronSchedule("0 12 * * *", "Pacific/Apia")  # There was no 30 December 2011.
    assert [slot.key for slot in daily.upcoming(at("2011-12-28T23:00Z"), 2)] == [
        "2011-12-29T12:00",
        "2011-12-31T12:00",
    ]
    one_a_day(daily, "2011-12-29T22:00Z", "2011-12-30T22:00Z", "2011-12-31T22:00Z")
    yearly = CronSchedule("0 0 30 12 *", "Pacific/Apia")
    assert yearly.next(at("2011-01-01T00:00Z")).key == "2012-12-30T00:00"
    assert yearly.newest(at("2012-01-01T00:00Z")).key == "2010-12-30T00:00"


def test_a_gap_that_ends_with_the_date_leaves_no_slot_on_it():
    nuuk = CronSchedule("30 23 * * *", "America/Nuuk")  # 23:00 on 30 March is 0:00 on 31 March.
    assert [slot.key for slot in nuuk.upcoming(at("2024-03-29T02:00Z"), 2)] == [
        "2024-03-29T23:30",
        "2024-03-31T23:30",
    ]
    midnight = CronSchedule("0 0 * * *", "America/Nuuk")
    one_a_day(midnight, "2024-03-30T02:00Z", "2024-03-31T01:00Z", "2024-04-01T01:00Z")


def test_every_half_hour_invents_nothing_in_a_gap():
    schedule = CronSchedule("*/30 * * * *", "Europe/Berlin")
    assert between(schedule, "2024-03-31T00:00Z", "2024-03-31T02:00Z") == [
        at(f"2024-03-31T{time}Z") for time in ("00:00", "00:30", "01:00", "01:30", "02:00")
    ]
    only_in_the_gap = CronSchedule("*/15 2 31 3 *", "Europe/Berlin")
    assert only_in_the_gap.next(at("2024-03-01T00:00Z")).at == at("2025-03-31T00:00Z")


def test_half_an_hour_is_missing_on_lord_howe():
    hourly = CronSchedule("0 * * * *", "Australia/Lord_Howe")
    slot = hourly.next(at("2024-10-05T14:30Z"))
    assert slot.at == at("2024-10-05T16:00Z")
    assert hourly.previous(slot).at == at("2024-10-05T14:30Z")
    assert named(hourly, at("2024-10-05T15:30Z")) is None
    for expression in ("0 2 * * *", "15 2 * * *"):
        daily = CronSchedule(expression, "Australia/Lord_Howe")
        assert daily.next(at("2024-10-05T14:30Z")).at == at("2024-10-05T15:30Z")


def test_offsets_with_seconds_are_kept_in_instant_and_key():
    schedule = CronSchedule("*/15 * * * *", "Africa/Monrovia")
    slots = schedule.upcoming(at("1972-01-07T00:20Z"), 2)
    assert [slot.key for slot in slots] == ["1972-01-07T00:29:30Z", "1972-01-07T00:45Z"]
    assert [slot.at.isoformat() for slot in slots] == [
        "1972-01-06T23:45:00-00:44:30",
        "1972-01-07T00:45:00+00:00",
    ]


def test_no_day_is_left_out_or_shifted_by_a_change_the_night_before():
    weekly = CronSchedule("0 12 * * 0", "Europe/Berlin")
    assert weekly.next(at("2022-03-24T11:00Z")).at == at("2022-03-27T10:00Z")
    paris = CronSchedule("0 20 * * *", "Europe/Paris")
    one_a_day(paris, "2022-10-30T19:00Z", "2022-10-31T19:00Z", "2022-11-01T19:00Z")
    lisbon = CronSchedule("0 1 30 3 *", "Europe/Lisbon")
    assert lisbon.next(at("2024-11-15T00:00Z")).at == at("2025-03-30T01:00Z")


def test_a_day_lasts_23_or_25_hours_where_the_clock_changes():
    schedule = CronSchedule("0 12 * * *", "Africa/Casablanca")  # Ramadan ran to 14 April 2024.
    around = schedule.upcoming(at("2024-03-08T12:00Z"), 40)
    lengths = [b.at.astimezone(UTC) - a.at.astimezone(UTC) for a, b in pairwise(around)]
    assert sorted({length // timedelta(hours=1) for length in lengths}) == [23, 24, 25]
    assert schedule.interval(around[0]) == lengths[0]
