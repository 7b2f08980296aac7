"""Hints where an expression does not mean what it seems to, and none where it does."""

from __future__ import annotations

import pytest

from flask_cronlock.schedule import CronSchedule, EverySchedule
from tests.support.slots import at, between

CHANGES = "the clock of {} repeats or jumps over hour {}"
ONCE = ", and so do the slots; for once on each date write minute and hour without *"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("*/50 * * * *", "*/50 starts again every hour: it is not every 50 minutes"),
        ("0/50 * * * *", "0/50 starts again every hour: it is not every 50 minutes"),
        ("20/15 * * * *", "20/15 starts again every hour: it is not every 15 minutes"),
        ("0 */5 * * *", "*/5 starts again every day: it is not every 5 hours"),
        ("0 0 */7 * *", "*/7 starts again every month: it is not every 7 days"),
        ("0 0 */2 * *", "*/2 starts again every month: it is not every 2 days"),
        ("0 0 1 */5 *", "*/5 starts again every year: it is not every 5 months"),
        ("0 0 * * */2", "*/2 starts again every week: it is not every 2 days"),
    ],
)
def test_a_step_that_starts_again_unevenly_says_so(expression, hint):
    assert CronSchedule(expression, "UTC").hints == (hint,)


@pytest.mark.parametrize(
    "expression",
    [
        "*/15 */6 * * *",
        "5/15 * * * *",
        "0 0 1 */3 *",
        "*/1 * */1 * *",
        "*/60 * * * *",
        "0-59/50 * * * *",
    ],
)
def test_a_step_that_goes_round_evenly_or_names_its_end_needs_no_hint(expression):
    assert CronSchedule(expression, "UTC").hints == ()


def test_a_step_of_seven_days_is_the_1st_again_after_the_29th():
    schedule = CronSchedule("0 0 */7 * *", "UTC")
    assert [when.day for when in between(schedule, "2026-01-15T00:00Z", "2026-02-08T00:00Z")] == [
        15, 22, 29, 1, 8,
    ]  # fmt: skip


def test_every_minute_of_an_hour_says_how_to_have_it_once():
    hint = "* is every minute of hour 2: for once an hour write 0"
    schedule = CronSchedule("* 2 * * *", "UTC")
    assert schedule.hints == (hint,)
    assert len(between(schedule, "2026-08-03T00:00Z", "2026-08-03T23:59Z")) == 60
    assert CronSchedule("* * * * *", "UTC").hints == ()


def test_a_day_of_month_and_a_weekday_say_that_either_is_enough():
    hint = "day-of-month and day-of-week are both set: a day that matches either is taken"
    assert CronSchedule("0 0 13 * 5", "UTC").hints == (hint,)
    assert CronSchedule("0 0 31 * MON", "UTC").hints == (hint,)
    assert CronSchedule("0 0 13 * *", "UTC").hints == ()


def test_a_day_that_not_every_month_has_names_the_last_day():
    hint = "a month without day {} is left out: its last day is written L"
    assert CronSchedule("0 0 31 * *", "UTC").hints == (hint.format(31),)
    assert CronSchedule("0 0 29,30 * *", "UTC").hints == (hint.format(29),)
    for expression in ("0 0 31 1,3 *", "0 0 28 * *", "0 0 L * *", "0 0 LW * *", "0 0 1-31 * *"):
        assert CronSchedule(expression, "UTC").hints == ()


@pytest.mark.parametrize(
    ("expression", "zone", "hours"),
    [
        ("*/15 2 * * *", "Europe/Berlin", "2"),
        ("0 */2 * * *", "Europe/Berlin", "2"),
        ("*/15 1-3 * * *", "Australia/Lord_Howe", "1, 2"),
        ("*/15 23 * * *", "Africa/Cairo", "23"),
    ],
)
def test_slots_that_follow_the_clock_through_its_changes_say_how_to_have_them_once(
    expression, zone, hours
):
    assert CronSchedule(expression, zone).hints == (CHANGES.format(zone, hours) + ONCE,)


def test_hours_that_are_all_named_by_number_say_that_a_repeated_one_has_its_slots_once():
    schedule = CronSchedule("0 0-23 * * *", "Europe/Berlin")
    assert schedule.hints == (
        CHANGES.format("Europe/Berlin", 2)
        + ": a repeated time has one slot; write * for the hour to have both",
    )
    assert between(schedule, "2026-10-25T00:00Z", "2026-10-25T02:00Z") == [
        at("2026-10-25T00:00Z"),
        at("2026-10-25T02:00Z"),
    ]


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("*/15 2 * * *", "UTC"),  # Its clock never changes,
        ("*/15 2 * * *", "America/Sao_Paulo"),  # no longer changes,
        ("*/15 9-17 * * MON-FRI", "Europe/Berlin"),  # not in these hours,
        ("*/15 2 1 6 *", "Europe/Berlin"),  # not on this date;
        ("*/15 * * * *", "Europe/Berlin"),  # and these mean what they say.
        ("30 2 * * *", "Europe/Berlin"),
    ],
)
def test_what_no_change_of_the_clock_can_alter_needs_no_hint(expression, zone):
    assert CronSchedule(expression, zone).hints == ()


def test_an_interval_means_what_it_says():
    assert EverySchedule("50m").hints == ()
