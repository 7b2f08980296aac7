"""From a schedule to its slots: pure functions of an instant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from .cronfields import FIRST_YEAR, LAST_YEAR, CronFields
from .durations import Duration, format_duration, parse_every
from .exceptions import ScheduleError
from .hints import hints
from .zones import instant_of, load_zone, local

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
# Every slot lies between these two, and both have a wall time in any zone.
_BEFORE_ALL = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - 2 * _DAY
_AFTER_ALL = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) + 2 * _DAY - _TICK


@dataclass(frozen=True)
class Slot:
    """One scheduled time: `key` names it in the ledger, `at` is its instant in the job's zone.

    Convert `at` to UTC before it is subtracted or compared: Python compares datetimes of one zone
    by wall time, and finds one in a repeated hour unequal to the same instant of any other zone.
    """

    key: str
    at: datetime


class Schedule(ABC):
    """The slots of a job, from 1970 to 9998.

    Takes aware datetimes of any zone and refuses naive ones with `ValueError`.
    """

    hints: tuple[str, ...] = ()
    """What the expression does that its writer may not expect."""

    @abstractmethod
    def newest(self, until: datetime) -> Slot | None:
        """Return the newest slot at or before `until`, None before the first."""

    @abstractmethod
    def next(self, after: datetime) -> Slot:
        """Return the first slot later than `after`; `OverflowError` after the last."""

    def previous(self, slot: Slot) -> Slot | None:
        """Return the slot before this one, None at the first."""
        return self.newest(slot.at.astimezone(UTC) - _TICK)

    def upcoming(self, after: datetime, count: int) -> list[Slot]:
        """Return the next `count` slots later than `after`."""
        slots: list[Slot] = []
        for _ in range(count):
            slots.append(self.next(slots[-1].at if slots else after))
        return slots

    def interval(self, slot: Slot) -> timedelta:
        """Return the elapsed time from this slot to the next."""
        return self.next(slot.at).at.astimezone(UTC) - slot.at.astimezone(UTC)


class CronSchedule(Schedule):
    """A five-field cron expression in a time zone.

    A fixed-time expression (neither minute nor hour starts with `*`) has a slot per local label,
    `2026-10-25T02:30`: once, at the first pass, where the clock goes back, and right after the gap
    where it goes forward, if that is still the same date. Any other expression follows elapsed
    time: every real instant whose wall time matches, named in UTC, `2026-10-25T00:30Z`.
    """

    def __init__(self, expression: str, zone: str) -> None:
        self.zone = load_zone(zone)
        self._fields = CronFields(expression)
        self.expression = self._fields.text
        self.hints = tuple(hints(self._fields, self.zone))
        dates = self._fields.sample_dates()
        if not any(self._first_on(day, _BEFORE_ALL, second_pass=False) for day in dates):
            raise ScheduleError(
                f"{self.expression!r} names only times that the clock of {zone} jumps over; "
                "correct its hour or its date"
            )
        self._passes = (False,) if self._fields.fixed else (False, True)
        # Runs of one slot ask for the same neighbours. The keys are in UTC: a repeated hour's two
        # instants are one key in any other zone.
        self._newest = lru_cache(maxsize=8)(self._find_newest)
        self._next = lru_cache(maxsize=8)(self._find_next)

    def __str__(self) -> str:
        return f"{self.expression} {self.zone.key}"

    def newest(self, until: datetime) -> Slot | None:
        return self._newest(_utc(until))

    def next(self, after: datetime) -> Slot:
        return self._next(_utc(after))

    def _find_newest(self, until: datetime) -> Slot | None:
        found = [self._last(until, second_pass) for second_pass in self._passes]
        last = max((moment for moment in found if moment), default=None)
        return self._slot(*last) if last else None

    def _find_next(self, after: datetime) -> Slot:
        return self._slot(*min(self._first(after, second) for second in self._passes))

    # Within one pass the instants never decrease from label to label, across dates too. So a binary
    # search holds in every zone, and labels that share an instant lie side by side. Wall time has
    # never been turned back by more than a day: the search starts one day beyond the instant.

    def _last(self, until: datetime, second_pass: bool) -> tuple[datetime, datetime] | None:
        times = self._fields.times
        for day in self._fields.dates_until(local(until, self.zone).date() + _DAY):
            end = self._index(bisect_right, day, until, second_pass)
            while end > 0:
                label = datetime.combine(day, times[end - 1])
                instant = instant_of(label, self.zone, second_pass)
                if self._counts(label, instant):
                    return instant, label
                end = self._index(bisect_left, day, instant, second_pass)
        return None

    def _first(self, after: datetime, second_pass: bool) -> tuple[datetime, datetime]:
        for day in self._fields.dates_from(local(after, self.zone).date() - _DAY):
            if found := self._first_on(day, after, second_pass):
                return found
        raise OverflowError(f"{self} has no slot later than {after}")

    def _first_on(
        self, day: date, after: datetime, second_pass: bool
    ) -> tuple[datetime, datetime] | None:
        times = self._fields.times
        start = self._index(bisect_right, day, after, second_pass)
        while start < len(times):
            instant = instant_of(datetime.combine(day, times[start]), self.zone, second_pass)
            start = self._index(bisect_right, day, instant, second_pass)
            label = datetime.combine(day, times[start - 1])
            if self._counts(label, instant):
                return instant, label
        return None

    def _index(
        self, search: Callable[..., int], day: date, instant: datetime, second_pass: bool
    ) -> int:
        def key(at: time) -> datetime:
            return instant_of(datetime.combine(day, at), self.zone, second_pass)

        # The wall clock shows the place, unless it has changed nearby.
        times, wall = self._fields.times, local(instant, self.zone)
        place = len(times) if wall.date() > day else 0
        if wall.date() == day:
            place = search(times, wall.time())
        found = search(times, instant, max(place - 1, 0), min(place + 1, len(times)), key=key)
        return found if found == place else search(times, instant, key=key)

    def _counts(self, label: datetime, instant: datetime) -> bool:
        wall = local(instant, self.zone)
        return wall.date() == label.date() if self._fields.fixed else wall == label

    def _slot(self, instant: datetime, label: datetime) -> Slot:
        key = label.isoformat(timespec="minutes") if self._fields.fixed else _key(instant)
        return Slot(key, instant.astimezone(self.zone))


class EverySchedule(Schedule):
    """Every so many whole seconds, counted from 1970-01-01T00:00Z; slots are named in UTC."""

    zone = UTC

    def __init__(self, interval: Duration) -> None:
        self.every = parse_every(interval)

    def __str__(self) -> str:
        return f"every {format_duration(self.every)}"

    def newest(self, until: datetime) -> Slot | None:
        count = (_utc(until) - _EPOCH) // self.every
        return self._slot(count) if count >= 0 else None

    def next(self, after: datetime) -> Slot:
        slot = self._slot(max((_utc(after) - _EPOCH) // self.every + 1, 0))
        if slot.at > _AFTER_ALL:
            raise OverflowError(f"{self} has no slot later than {after}")
        return slot

    def _slot(self, count: int) -> Slot:
        at = _EPOCH + count * self.every
        return Slot(_key(at), at)


def _utc(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError(
            f"{instant!r} has no time zone; use datetime.now(timezone.utc) or the like"
        )
    return min(max(instant, _BEFORE_ALL), _AFTER_ALL).astimezone(UTC)


def _key(instant: datetime) -> str:
    timespec = "seconds" if instant.second else "minutes"
    return instant.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
