"""Where a cron expression does not mean what it seems to."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from .cronfields import SAMPLE_YEARS, CronFields
from .zones import odd_hours

# What a field counts, when it starts again, and how many that takes (of a month's days: it varies).
_CYCLES = (
    ("minute", "hour", 60),
    ("hour", "day", 24),
    ("day", "month", None),
    ("month", "year", 12),
    ("day", "week", 7),
)


def hints(fields: CronFields, zone: ZoneInfo) -> Iterator[str]:
    """Yield what the expression does in that zone that its writer may not expect."""
    minute, hour, day, _month, weekday = fields.fields
    for field, cycle in zip(fields.fields, _CYCLES, strict=True):
        yield from _uneven_step(field, *cycle)
    if minute == "*" and not hour.startswith("*"):
        yield f"* is every minute of hour {hour}: for once an hour write 0"
    if not day.startswith("*") and not weekday.startswith("*"):
        yield "day-of-month and day-of-week are both set: a day that matches either is taken"
    if weekday == "*" and fields.first_day > min(map(_days_in, fields.months)):
        yield f"a month without day {fields.first_day} is left out: its last day is written L"
    yield from _changing_clock(fields, zone)


def _uneven_step(field: str, unit: str, whole: str, count: int | None) -> Iterator[str]:
    stepped = re.fullmatch(r"(\*|\d+)/(\d+)", field, re.ASCII)
    if not stepped:
        return
    start, step = int(stepped[1].replace("*", "0")), int(stepped[2])
    even = count is not None and count % step == 0 and start < step
    if step > 1 and not even:
        yield f"{field} starts again every {whole}: it is not every {step} {unit}s"


def _changing_clock(fields: CronFields, zone: ZoneInfo) -> Iterator[str]:
    whole_day = len(fields.hours) == 24
    if fields.fixed != whole_day:
        return
    odd = {
        hour.hour
        for hour in odd_hours(zone, SAMPLE_YEARS)
        if hour.hour in fields.hours and fields.includes(hour.date())
    }
    if not odd:
        return
    told = f"the clock of {zone.key} repeats or jumps over hour {', '.join(map(str, sorted(odd)))}"
    if whole_day:
        yield f"{told}: a repeated time has one slot; write * for the hour to have both"
    else:
        yield f"{told}, and so do the slots; for once on each date write minute and hour without *"


def _days_in(month: int) -> int:
    return monthrange(2001, month)[1]
