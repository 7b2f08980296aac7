"""The dates and times of day that a cron expression names."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Iterator
from datetime import UTC, date, datetime, time

from cronsim import CronSim, CronSimError

from .exceptions import ScheduleError

FIRST_YEAR, LAST_YEAR = 1970, 9998

_NAMES = ("minute", "hour", "day-of-month", "month", "day-of-week")
_VALUES = ("0-59", "0-23", "1-31, L or LW", "1-12 or JAN-DEC", "0-7, SUN-SAT, 5L or MON#2")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# One year of each kind: 28 years hold every weekday of 1 January, leap and common.
_SAMPLE_YEARS = range(2000, 2028)


class CronFields:
    """A five-field cron expression: the local dates and the times of day it names.

    As in Debian's cron, day-of-month and day-of-week must both match if one of them starts with
    `*`; otherwise either is enough. Knows no zone. Raises `ScheduleError`.
    """

    def __init__(self, expression: str) -> None:
        fields = _split(expression)
        self.text = " ".join(fields)
        self.fixed = not (fields[0].startswith("*") or fields[1].startswith("*"))
        self.notes = tuple(_notes(fields))
        for position, field in enumerate(fields):
            _check(self.text, position, field)
        self._days: dict[tuple[int, bool], list[int]] = {}
        try:
            self._cron = _parse(self.text)
        except CronSimError:
            raise ScheduleError(_never(self.text)) from None
        if not any(self._days_of(year) for year in _SAMPLE_YEARS):
            raise ScheduleError(_never(self.text))
        self.times = [
            time(hour, minute)
            for hour in sorted(self._cron.hours)
            for minute in sorted(self._cron.minutes)
        ]

    def dates_from(self, day: date) -> Iterator[date]:
        """Yield the matching dates from `day` on, oldest first."""
        for year in range(max(day.year, FIRST_YEAR), LAST_YEAR + 1):
            first, days = date(year, 1, 1).toordinal(), self._days_of(year)
            for number in days[bisect_left(days, day.toordinal() - first) :]:
                yield date.fromordinal(first + number)

    def dates_until(self, day: date) -> Iterator[date]:
        """Yield the matching dates up to and including `day`, newest first."""
        for year in range(min(day.year, LAST_YEAR), FIRST_YEAR - 1, -1):
            first, days = date(year, 1, 1).toordinal(), self._days_of(year)
            for number in reversed(days[: bisect_right(days, day.toordinal() - first)]):
                yield date.fromordinal(first + number)

    def _days_of(self, year: int) -> list[int]:
        """Return the matching days of a year, 0 for 1 January; there are only 14 kinds of year."""
        first = date(year, 1, 1)
        kind = first.weekday(), isleap(year)
        if kind not in self._days:
            dates = map(
                date.fromordinal, range(first.toordinal(), first.toordinal() + 365 + kind[1])
            )
            self._days[kind] = [
                number
                for number, day in enumerate(dates)
                if day.month in self._cron.months and self._cron.match_day(day)
            ]
        return self._days[kind]


def _split(expression: str) -> list[str]:
    if not isinstance(expression, str):
        raise ScheduleError(f"schedule={expression!r} is not text; write it as '0 7 * * *'")
    fields = expression.split()
    if len(fields) == 5:
        return fields
    if expression.strip() in _MACROS:
        raise ScheduleError(f"{expression!r}: write {_MACROS[expression.strip()]!r} instead")
    cure = "write five: minute hour day-of-month month day-of-week"
    if len(fields) == 6:
        cure += " (no seconds and no year; for intervals under a minute use every='30s')"
    raise ScheduleError(f"{expression!r} has {len(fields)} fields; {cure}")


def _check(text: str, position: int, field: str) -> None:
    alone = ["*"] * 5
    alone[position] = field
    try:
        _parse(" ".join(alone))
    except (CronSimError, AssertionError, TypeError, ValueError):
        raise ScheduleError(
            f"{text!r}: bad {_NAMES[position]} field {field!r}; it takes {_VALUES[position]}, "
            "and *, lists (1,2), ranges (1-5) and steps (*/5)"
        ) from None


def _parse(text: str) -> CronSim:
    return CronSim(text, datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))


def _never(text: str) -> str:
    return f"{text!r} names a date that never comes; correct its day-of-month, month or day-of-week"


def _notes(fields: list[str]) -> Iterator[str]:
    for field, unit, whole, count in (
        (fields[0], "minute", "hour", 60),
        (fields[1], "hour", "day", 24),
    ):
        step = re.fullmatch(r"\*/0*([1-9]\d*)", field, re.ASCII)
        if step and count % int(step[1]):
            yield f"{field} starts again every {whole}: it is not every {step[1]} {unit}s"
    if not fields[2].startswith("*") and not fields[4].startswith("*"):
        yield "day-of-month and day-of-week are both set: a day that matches either is taken"
