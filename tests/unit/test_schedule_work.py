"""No question about any slot takes long: the work of the answer is counted."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from random import Random

import pytest

from flask_cronlock.exceptions import ScheduleError
from flask_cronlock.schedule import CronSchedule
from tests.support.slots import at, work_of
from tests.support.walks import DAY, changes_of, zones_alike

RARE = [
    "0 0 29 2 *",
    "0 0 * 2 MON#5",
    "59 23 LW * *",
    "* * 29 2 */7",
    "0-59 0-23 31 12 *",
    "* 0 * 3 0L",
    "* 2 * 4 SUN#1",
    "* * 30 12 *",
]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 29 2 *", "2024-02-29T00:00Z", "2028-02-29T00:00Z"),
        ("0 0 29 2 *", "2096-03-01T00:00Z", "2104-02-29T00:00Z"),
        ("0 0 29 2 */7", "2088-03-01T00:00Z", "2128-02-29T00:00Z"),  # a Sunday
        ("* * 29 2 *", "2096-02-29T23:59Z", "2104-02-29T00:00Z"),
    ],
)
def test_a_rare_date_is_found_across_centuries_without_a_long_search(expression, after, expected):
    schedule = CronSchedule(expression, "UTC")
    assert schedule.next(at(after)).at == at(expected)
    assert schedule.newest(at(expected) - timedelta(seconds=1)) == schedule.newest(at(after))
    assert work_of(lambda: CronSchedule(expression, "UTC").next(at(after))) < 50_000
    assert work_of(lambda: CronSchedule(expression, "UTC").newest(at(after))) < 50_000


@pytest.mark.parametrize("expression", ["* * * * *", "* * 30 12 *", "0-59 0-23 30 12 *"])
def test_a_whole_day_of_missing_minutes_is_passed_without_a_walk(expression):
    schedule = CronSchedule(expression, "Pacific/Apia")  # There was no 30 December 2011.
    assert work_of(lambda: schedule.next(at("2011-12-30T09:59:30Z"))) < 50_000
    assert work_of(lambda: schedule.newest(at("2011-12-31T12:00Z"))) < 50_000


@pytest.mark.parametrize(
    ("expression", "zone", "ask", "instant", "key"),
    [
        # From 1981 to 2023 its clock jumped over that hour each year, on just that date.
        ("* 0 * 3 0L", "America/Scoresbysund", "newest", "2022-03-26T01:00Z", "1980-03-30T02:59Z"),
        # From 1987 to 2006 its clock jumped over that hour each year, on just that date.
        ("* 2 * 4 SUN#1", "America/New_York", "newest", "2007-03-10T07:00Z", "1986-04-06T07:59Z"),
        ("* 2 * 4 SUN#1", "America/New_York", "next", "1987-04-01T00:00Z", "2007-04-01T06:00Z"),
        (
            "* 2 * 4 SUN#1",
            "America/Mexico_City",
            "newest",
            "2020-04-04T08:00Z",
            "2001-04-01T08:59Z",
        ),
        ("* 2 * 5 SUN#2", "Africa/Casablanca", "next", "2009-06-02T00:00Z", "2010-05-09T01:00Z"),
    ],
)
def test_slots_that_a_clock_jumps_over_year_after_year_are_passed_quickly(
    expression, zone, ask, instant, key
):
    schedule = CronSchedule(expression, zone)
    work = work_of(lambda: getattr(schedule, ask)(at(instant)))
    assert getattr(schedule, ask)(at(instant)).key == key
    assert work < 100_000


def test_no_rare_schedule_takes_long_in_any_zone():
    for names in zones_alike():
        random = Random(names[0])
        changes = [change.at for change in changes_of(names[0])] or [at("2001-01-01T00:00Z")]
        instant = random.choice(changes) + random.uniform(-1, 1) * DAY
        try:
            schedule = CronSchedule(random.choice(RARE), random.choice(names))
        except ScheduleError:  # The clock jumps over all its times.
            continue
        for ask in (schedule.next, schedule.newest):
            assert work_of(partial(ask, instant)) < 100_000, f"{schedule} {instant}"
