"""Time zones by exact name, and local times turned into instants."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from .exceptions import ScheduleError

# Keys that load, but mean "whatever this host is set to" or "not set at all".
_NO_PLACE = frozenset({"Factory", "localtime", "posixrules"})


def load_zone(name: object) -> ZoneInfo:
    """Return the zone of exactly that IANA name.

    Anything else raises `ScheduleError`: a quoted, misspelt or empty name never becomes UTC. Names
    are compared with the known ones because a case-insensitive file system opens `europe/berlin`.
    """
    zones = _known_zones()
    if isinstance(name, str) and name in zones:
        return ZoneInfo(name)
    if not zones:
        raise ScheduleError(f"time zone {name!r}: no time zone data here; pip install tzdata")
    raise ScheduleError(f"unknown time zone {name!r}; {_cure(name, zones)}")


def local(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the naive wall time in `zone` at an instant."""
    return instant.astimezone(zone).replace(tzinfo=None)


def instant_of(label: datetime, zone: ZoneInfo, second_pass: bool = False) -> datetime:
    """Return the UTC instant of a naive local time.

    A time that occurs twice means its first pass unless `second_pass`; a time inside a gap means
    the first instant after the gap. Later labels never give earlier instants.
    """
    first, second = (_offset(label, zone, fold) for fold in (0, 1))
    if first >= second:
        return (label - (second if second_pass else first)).replace(tzinfo=UTC)
    # In a gap: fold=1 reads the label with the new offset, which is an instant before the gap.
    start = (label - second).replace(tzinfo=UTC)
    seconds = range((second - first) // timedelta(seconds=1))
    return start + timedelta(
        seconds=bisect_left(
            seconds, True, key=lambda n: local(start + timedelta(seconds=n), zone) > label
        )
    )


def _offset(label: datetime, zone: ZoneInfo, fold: int) -> timedelta:
    return label.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0)


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
