"""The clock that a test may put in the place of the database's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

_clocks: WeakKeyDictionary[Engine, Callable[[], datetime]] = WeakKeyDictionary()


def inject(engine: Engine, clock: Callable[[], datetime] | None) -> None:
    """Let runs on *engine* take slot and stamps from *clock*; ``None``: the database's again."""
    if clock is None:
        _clocks.pop(engine, None)
    else:
        _clocks[engine] = clock


def injected_now(engine: Engine) -> datetime | None:
    """Return the injected clock's time, or ``None`` where the database's holds."""
    clock = _clocks.get(engine)
    return clock() if clock else None
