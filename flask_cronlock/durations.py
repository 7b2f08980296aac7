"""Durations as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from .exceptions import DurationError
from .texts import shown

Duration = timedelta | int | float | str

_TEXT = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.ASCII)
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_LONGEST = timedelta(days=36525)


def parse_duration(value: Duration, what: str) -> timedelta:
    """Return `value` as a timedelta.

    A number means seconds; text is one number and one unit out of s, m, h and d. Whatever is not
    positive, or longer than a century, raises `DurationError` that begins with `what`.
    """
    given = f"{what}={shown(value)}"
    try:
        duration = _read(value)
    except OverflowError:
        raise DurationError(f"{given} is longer than a century; shorten it") from None
    if duration is None:
        raise DurationError(f"{given} is not a duration")
    if duration <= timedelta(0):
        raise DurationError(f"{given} is not positive")
    if duration > _LONGEST:
        raise DurationError(f"{given} is longer than a century; shorten it")
    return duration


def parse_every(value: Duration) -> timedelta:
    """Return the interval of an `every=` schedule: whole seconds, at least one."""
    interval = parse_duration(value, "every")
    if interval % timedelta(seconds=1):
        given = f"every={shown(value)}"
        raise DurationError(f"{given} is not in whole seconds; round it, the least is '1s'")
    return interval


def format_duration(duration: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads back as `duration`, such as `15m`."""
    for unit, seconds in _SECONDS.items():
        if not duration % timedelta(seconds=seconds):
            return f"{duration // timedelta(seconds=seconds)}{unit}"
    return f"{duration // timedelta(seconds=1)}.{duration.microseconds:06d}".rstrip("0") + "s"


def _read(value: object) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return timedelta(seconds=value) if value == value else None
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) * timedelta(seconds=_SECONDS[unit])
