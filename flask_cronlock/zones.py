"""Time zones by exact name, and local times turned into instants."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from .exceptions import ScheduleError
from .texts import shown

# Keys that load, but mean "whatever this host is set to" or "not set at all".
_NO_PLACE = frozenset({"Factory", "localtime", "posixrules"})
_DAY, _QUARTER, _SECOND = timedelta(days=1), timedelta(minutes=15), timedelta(seconds=1)


def load_zone(name: object) -> ZoneInfo:
    """Return the zone of exactly that IANA name.

    Anything else raises `ScheduleError`: a quoted, misspelt or empty name never becomes UTC. Names
    are compared with the known ones because a case-insensitive file system opens `europe/berlin`.
    """
    zones = _known_zones()
    if isinstance(name, str) and name in zones:
        return ZoneInfo(name)
    if not zones:
        raise ScheduleError(f"time zone {shown(name)}: no time zone data here; pip install tzdata")
    raise ScheduleError(f"unknown time zone {shown(name)}; {_cure(name, zones)}")


def local(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the naive wall time in `zone` at an instant."""
    return instant.astimezone(zone).replace(tzinfo=None)


def instant_of(label: datetime, zone: ZoneInfo, second_pass: bool = False) -> datetime:
    """Return the UTC instant of a naive local time of fold 0.

    A time that occurs twice means its first pass unless `second_pass`; a time inside a gap means
    the first instant after the gap. Later labels never give earlier instants.
    """
    first, second = _offset(label, zone), _offset(label.replace(fold=1), zone)
    if first >= second:
        return (label - (second if second_pass else first)).replace(tzinfo=UTC)
    # In a gap the label itself reads the old offset; the first one that reads the new ends the gap.
    seconds = range((second - first) // _SECOND)
    ahead = bisect_left(seconds, True, key=lambda n: _offset(label + n * _SECOND, zone) == second)
    return (label + ahead * _SECOND - second).replace(tzinfo=UTC)


@cache
def odd_hours(zone: ZoneInfo, years: range) -> frozenset[datetime]:
    """Return the local hours of those years that the zone's clock repeats or jumps over in part."""
    begin, end = datetime(years.start, 1, 1), datetime(years.stop, 1, 1)
    days = [begin + n * _DAY for n in range((end - begin).days + 1)]
    changing = [a for a, b in pairwise(days) if _offset(a, zone) != _offset(b, zone)]
    quarters = [day + n * _QUARTER for day in changing for n in range(_DAY // _QUARTER)]
    return frozenset(
        label.replace(minute=0)
        for label in quarters
        if _offset(label, zone) != _offset(label.replace(fold=1), zone)
    )


def _offset(label: datetime, zone: ZoneInfo) -> timedelta:
    return zone.utcoffset(label) or timedelta(0)


@cache
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_PLACE


def _cure(name: object, zones: frozenset[str]) -> str:
    if not isinstance(name, str) or not name.strip():
        return "name one such as 'Europe/Berlin' or 'UTC'"
    by_folded = {zone.casefold(): zone for zone in zones}
    close = get_close_matches(name.strip("\"' \t\r\n").casefold(), by_folded, n=1, cutoff=0.8)
    if close:
        return f"did you mean {by_folded[close[0]]!r}, exactly so, without further quotes?"
    return "use an IANA name such as 'Europe/Berlin' or 'UTC'"
