"""The clock that a test may put in the place of the database's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from .exceptions import ConfigError

_clocks: WeakKeyDictionary[Engine, Callable[[], datetime]] = WeakKeyDictionary()


@contextmanager
def injected(engine: Engine, clock: Callable[[], datetime]) -> Iterator[None]:
    """Let runs on *engine* take slot and stamps from *clock*, and not from the database.

    :raises ConfigError: where another clock is in that place.
    """
    if _clocks.setdefault(engine, clock) is not clock:
        raise ConfigError("this app has a manual clock already: use that one, and move it")
    try:
        yield
    finally:
        del _clocks[engine]


def clock_of(engine: Engine) -> Callable[[], datetime | None]:
    """Return the injected clock, or one that knows no time where the database's holds.

    What began by one of them ends by it: no row is to hold the time of two clocks.
    """
    return _clocks.get(engine) or (lambda: None)
