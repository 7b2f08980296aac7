"""The slots of a night as a plain walk along its clock finds them; shares no code with the package.

It knows when a zone's clock changes, and goes from there by what the clock shows at an instant,
never by asking at which instant a time is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from operator import itemgetter
from zoneinfo import ZoneInfo, available_timezones

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ZONES = sorted(available_timezones() - {"Factory", "localtime", "posixrules"})
_NOONS = [datetime(1970, 1, 2, 12) + n * DAY for n in range(70 * 365)]


@dataclass(frozen=True)
class Change:
    """One change of a zone's offset, at the first instant of the new one."""

    at: datetime
    before: timedelta
    after: timedelta


@cache
def changes_of(name: str) -> tuple[Change, ...]:
    """List the changes of a zone's offset from 1970 to 2039."""
    zone = ZoneInfo(name)
    offsets = list(map(zone.utcoffset, _NOONS))
    nights = (n for n in range(len(offsets) - 1) if offsets[n] != offsets[n + 1])
    return tuple(_change(zone, _NOONS[n], offsets[n], offsets[n + 1]) for n in nights)


def _change(zone: ZoneInfo, noon: datetime, before: timedelta, after: timedelta) -> Change:
    low, high = ((noon + days).replace(tzinfo=UTC) for days in (-DAY, 2 * DAY))
    seconds = range((high - low) // timedelta(seconds=1))
    found = bisect_left(
        seconds,
        True,
        key=lambda n: (low + timedelta(seconds=n)).astimezone(zone).utcoffset() == after,
    )
    return Change(low + timedelta(seconds=found), before, after)


def clock(instant: datetime, zone: ZoneInfo) -> tuple[datetime, timedelta]:
    """Return what the zone's clock shows, and its offset."""
    shown = instant.astimezone(zone)
    return shown.replace(tzinfo=None), shown.utcoffset()


@cache
def zones_alike() -> list[list[str]]:
    """Group the names of all zones whose clocks have shown the same since 1970."""
    groups: dict[object, list[str]] = {}
    for name in ZONES:
        first = clock(_NOONS[0].replace(tzinfo=UTC), ZoneInfo(name))
        groups.setdefault((first, changes_of(name)), []).append(name)
    return list(groups.values())


class Walk:
    """Every whole minute that a zone's clock shows on the local dates around an instant."""

    def __init__(self, name: str, around: datetime) -> None:
        self.zone, self.around = ZoneInfo(name), around
        self.days = sorted({clock(around + n * MINUTE, self.zone)[0].date() for n in (-1, 0)})
        inside = [change.at for change in changes_of(name) if abs(change.at - around) < 28 * HOUR]
        cuts = [around - 28 * HOUR, *inside, around + 28 * HOUR]
        self.steps = [step for piece in pairwise(cuts) for step in self._minutes(*piece)]
        self._rising = {day: list(self._new_heights(day)) for day in self.days}
        self.begin, self.end = self._first_of(self.days[0]), self._first_of(self.days[-1] + DAY)

    def _minutes(self, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield instants and what the clock shows, between two changes; the first one always."""
        shown, offset = clock(begin, self.zone)
        yield begin, shown
        whole = shown.replace(second=0, microsecond=0) + MINUTE
        start = (whole - offset).replace(tzinfo=UTC)
        for n in range(-((start - end) // MINUTE)):
            yield start + n * MINUTE, whole + n * MINUTE

    def _first_of(self, day: date) -> datetime:
        return next(instant for instant, shown in self.steps if shown.date() >= day)

    def slots(self, expression: str) -> dict[datetime, str]:
        """Return the instants and keys of the slots from `begin` until before `end`."""
        minutes, hours, *days = expression.split()
        times = {
            time(hour, minute)
            for hour in numbers(hours, 0, 23)
            for minute in numbers(minutes, 0, 59)
        }
        if minutes.startswith("*") or hours.startswith("*"):
            found = self._shown(times, days)
        else:
            found = self._first_shown(times, days)
        return {at: key for at, key in sorted(found.items()) if self.begin <= at < self.end}

    def _shown(self, times: set[time], days: list[str]) -> dict[datetime, str]:
        """A slot whenever the clock shows one of the times."""
        dates = {day for day in self.days if names(days, day)}
        found = (at for at, shown in self.steps if shown.time() in times and shown.date() in dates)
        return {at: at.isoformat().removesuffix("+00:00").removesuffix(":00") + "Z" for at in found}

    def _first_shown(self, times: set[time], days: list[str]) -> dict[datetime, str]:
        """A slot when the clock shows the time, or a later one of that date, for the first time."""
        found = {}
        for day in self.days:
            if not names(days, day):
                continue
            rising = self._rising[day]
            for at in sorted(times):
                place = bisect_left(rising, at, key=itemgetter(0))
                if place < len(rising):
                    found[rising[place][1]] = f"{day}T{at:%H:%M}"
        return found

    def _new_heights(self, day: date) -> Iterator[tuple[time, datetime]]:
        """Yield the times that are later than all that the clock has shown on that date."""
        highest = None
        for instant, shown in self.steps:
            if shown.date() == day and (highest is None or shown.time() > highest):
                highest = shown.time()
                yield highest, instant


def numbers(field: str, low: int, high: int) -> set[int]:
    """Return the numbers that a field of `*`, lists, ranges and steps names."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.replace("*", f"{low}-{high}").partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def names(days: list[str], day: date) -> bool:
    """Tell whether the last three fields of an expression name the date."""
    by_day = day.day in numbers(days[0], 1, 31)
    by_weekday = day.isoweekday() % 7 in numbers(days[2], 0, 6)
    either = not (days[0].startswith("*") or days[2].startswith("*"))
    named = by_day or by_weekday if either else by_day and by_weekday
    return named and day.month in numbers(days[1], 1, 12)
