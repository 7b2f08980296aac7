"""The dates and times of day that a cron expression names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Iterator
from datetime import UTC, date, datetime, time

from cronsim import CronSim, CronSimError

from .exceptions import ScheduleError
from .texts import shown

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
# One year of each kind: 28 years hold every weekday of 1 January, leap and common. Zones have come
# to their lasting rules by then, so what never comes in these years never comes after them.
SAMPLE_YEARS = range(2104, 2132)


class CronFields:
    """A five-field cron expression: the local dates and the times of day it names.

    As in Debian's cron, day-of-month and day-of-week must both match if one of them starts with
    `*`; otherwise either is enough. Knows no zone. Raises `ScheduleError`.
    """

    def __init__(self, expression: str) -> None:
        self.fields = _split(expression)
        self.text = " ".join(self.fields)
        self.fixed = not (self.fields[0].startswith("*") or self.fields[1].startswith("*"))
        for position, field in enumerate(self.fields):
            _check(self.text, position, field)
        self._kinds: dict[tuple[int, bool], list[int]] = {}
        try:
            self._cron = _parse(self.text)
        except CronSimError:
            raise ScheduleError(_never(self.text)) from None
        if next(self.sample_dates(), None) is None:
            raise ScheduleError(_never(self.text))
        self.hours, self.months = sorted(self._cron.hours), sorted(self._cron.months)
        self.first_day = min(self._cron.days)
        self.times = [
            time(hour, minute) for hour in self.hours for minute in sorted(self._cron.minutes)
        ]

    def includes(self, day: date) -> bool:
        """Tell whether the expression names that date."""
        return day.month in self._cron.months and self._cron.match_day(day)

    def sample_dates(self) -> Iterator[date]:
        """Yield the matching dates of one year of each kind."""
        for year in SAMPLE_YEARS:
            first = date(year, 1, 1).toordinal()
            yield from (date.fromordinal(first + number) for number in self._days_of(year))

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
        if kind not in self._kinds:
            self._kinds[kind] = [
                number
                for number in range(365 + kind[1])
                if self.includes(date.fromordinal(first.toordinal() + number))
            ]
        return self._kinds[kind]


def _split(expression: str) -> list[str]:
    if not isinstance(expression, str):
        raise ScheduleError(f"schedule={shown(expression)} is not text; write it as '0 7 * * *'")
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
