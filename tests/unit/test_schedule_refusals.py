"""What no schedule is made of: impossible dates, bad fields, unknown zones, naive datetimes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock import zones
from flask_cronlock.exceptions import DurationError, ScheduleError
from flask_cronlock.schedule import CronSchedule, EverySchedule
from tests.support.slots import at, work_of


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 31 4 *",
        "0 0 31 2,4,6 *",
        "0 0 30-31 2 *",
        "0 0 LW 2 */7",  # The last weekday of a month is no Sunday.
        "0 0 */8 * 1#5",  # Days 1, 9, 17 and 25 are never a fifth Monday.
    ],
)
def test_a_date_that_never_comes_is_refused_without_a_search(expression):
    with pytest.raises(ScheduleError) as refused:
        CronSchedule(expression, "UTC")
    assert f"{expression!r} names a date that never comes; correct its" in str(refused.value)
    assert work_of(lambda: CronSchedule(expression, "UTC")) < 50_000


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("*/15 2 * 3 7L", "Europe/Berlin"),
        ("* 2 * 3 SUN#2", "America/New_York"),
        ("*/10 0 * 4 5L", "Africa/Cairo"),
    ],
)
def test_times_that_the_clock_always_jumps_over_are_refused_without_a_search(expression, zone):
    cure = f"names only times that the clock of {zone} jumps over; correct its hour or its date"
    with pytest.raises(ScheduleError) as refused:
        CronSchedule(expression, zone)
    assert f"{expression!r} {cure}" in str(refused.value)
    assert work_of(lambda: CronSchedule(expression, zone)) < 50_000
    assert CronSchedule(expression, "UTC").next(at("2026-01-01T00:00Z"))
    assert CronSchedule(expression.replace("*", "0", 1), zone).next(at("2026-01-01T00:00Z"))


@pytest.mark.parametrize("expression", ["0 0 7 * * *", "*/30 * * * * *", "0 0 1 1 * 2026"])
def test_six_fields_are_refused_with_the_cure(expression):
    with pytest.raises(ScheduleError, match=r"has 6 fields; write five: minute .* every='30s'"):
        CronSchedule(expression, "UTC")


@pytest.mark.parametrize("expression", ["", "   ", "0 7 * *", "0 0 0 1 1 * 2026", "@reboot"])
def test_any_other_number_of_fields_is_refused(expression):
    with pytest.raises(ScheduleError, match=r"has \d fields; write five: minute hour"):
        CronSchedule(expression, "UTC")


def test_a_macro_is_refused_with_the_expression_to_write():
    with pytest.raises(ScheduleError, match=r"'@daily': write '0 0 \* \* \*' instead"):
        CronSchedule("@daily", "UTC")


@pytest.mark.parametrize("expression", [None, 15, b"0 7 * * *", timedelta(hours=1)])
def test_a_schedule_that_is_not_text_is_refused(expression):
    with pytest.raises(ScheduleError, match=r"is not text; write it as '0 7"):
        CronSchedule(expression, "UTC")


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("60 0 * * *", "minute field '60'"),
        ("*/0 * * * *", "minute field '*/0'"),
        ("0 24 * * *", "hour field '24'"),
        ("0 0 0 * *", "day-of-month field '0'"),
        ("0 0 * 13 *", "month field '13'"),
        ("0 0 * * 8", "day-of-week field '8'"),
        ("0 0 * * 5-1", "day-of-week field '5-1'"),
        ("0 0 * * 1#1/2", "day-of-week field '1#1/2'"),
        ("0 0 1, * *", "day-of-month field '1,'"),
        ("0 ٣ * * *", "hour field '٣'"),
        ("0 " + "9" * 5_000 + " * * *", "hour field '999"),
    ],
)
def test_a_bad_field_is_named_with_what_it_takes(expression, field):
    with pytest.raises(ScheduleError) as refused:
        CronSchedule(expression, "UTC")
    assert f"bad {field}" in str(refused.value)
    assert "it takes" in str(refused.value)


@pytest.mark.parametrize(
    ("zone", "cure"),
    [
        ('"Europe/Berlin"', "did you mean 'Europe/Berlin'"),
        ("'Europe/Berlin'", "did you mean 'Europe/Berlin'"),
        (" Europe/Berlin\n", "did you mean 'Europe/Berlin'"),
        ("Europe/berlin", "did you mean 'Europe/Berlin'"),
        ("utc", "did you mean 'UTC'"),
        ("Europe/Berlinn", "did you mean 'Europe/Berlin'"),
        ("", "name one such as 'Europe/Berlin' or 'UTC'"),
        ("  ", "name one such as 'Europe/Berlin' or 'UTC'"),
        (None, "name one such as 'Europe/Berlin' or 'UTC'"),
        (UTC, "name one such as 'Europe/Berlin' or 'UTC'"),
        ("+02:00", "use an IANA name"),
        ("Europe", "'"),
        ("../Europe/Berlin", "'"),
        ("Europe/\0Berlin", "'"),
        ("localtime", "use an IANA name"),
        ("Factory", "'"),
    ],
)
def test_a_zone_that_is_not_exactly_a_known_name_is_refused_with_a_cure(zone, cure):
    with pytest.raises(ScheduleError) as refused:
        CronSchedule("0 7 * * *", zone)
    assert f"unknown time zone {zone!r}; " in str(refused.value)
    assert cure in str(refused.value).split(repr(zone), 1)[1]


def test_a_wrong_case_is_refused_where_the_file_system_would_open_it(monkeypatch):
    monkeypatch.setattr(zones, "ZoneInfo", lambda _name: ZoneInfo("Europe/Berlin"))
    with pytest.raises(ScheduleError, match="Europe/berlin"):
        CronSchedule("0 7 * * *", "Europe/berlin")


def test_an_old_name_is_its_own_zone_and_not_utc():
    slot = CronSchedule("0 7 * * *", "EST5EDT").next(at("2026-07-01T00:00Z"))
    assert slot.at == at("2026-07-01T11:00Z")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "EST5EDT", "UTC"])
def test_without_time_zone_data_no_zone_is_taken_for_utc(zone):
    script = (
        "import sys; sys.modules['tzdata'] = None\n"
        "from flask_cronlock.schedule import CronSchedule\n"
        f"CronSchedule('0 7 * * *', {zone!r})"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONTZPATH": "", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert f"ScheduleError: The schedule cannot be used: time zone {zone!r}: no time zone data" in (
        result.stderr
    )
    assert "pip install tzdata" in result.stderr


@pytest.mark.parametrize("ask", ["newest", "next"])
@pytest.mark.parametrize("schedule", [CronSchedule("0 7 * * *", "UTC"), EverySchedule("15m")])
def test_a_naive_datetime_is_refused_with_a_cure(schedule, ask):
    with pytest.raises(ValueError, match="has no time zone; use datetime"):
        getattr(schedule, ask)(at("2026-01-01T00:00Z").replace(tzinfo=None))


@pytest.mark.parametrize("interval", [0, -1, 0.5, "1w", None])
def test_every_refuses_what_is_no_whole_number_of_seconds(interval):
    with pytest.raises(DurationError, match="every="):
        EverySchedule(interval)
