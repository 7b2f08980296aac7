"""Short transactions in which a worker writes what became of its work, and patience with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from typing import TypeVar

from ..exceptions import OutcomeUnknown, Unavailable
from ..state import AppState
from ..transaction import GuardedTransaction

T = TypeVar("T")

PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between tries; the last one again and again."""
PATIENCE = 600.0
"""Seconds: a failover, or the restart of a database, takes less."""


@contextmanager
def brief_write(state: AppState) -> Iterator[GuardedTransaction]:
    """Yield a short transaction of our own, and commit it."""
    with state.brief() as tx:
        yield tx
        tx.prove()
        tx.commit()


def patiently(write: Callable[[], T]) -> T:
    """Return what *write* returns, tried again while the database is away.

    What was done outside is known to this worker alone until it is written: who gives up here has
    it done again, or doubted.
    """
    until = time.monotonic() + PATIENCE
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        try:
            return write()
        except (Unavailable, OutcomeUnknown):
            if time.monotonic() + pause > until:
                raise
            time.sleep(pause)
    raise AssertionError("there is always another pause")
