"""A bounded number of threads that take calls from a queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from sqlalchemy import Pool, QueuePool

from .exceptions import ConfigError

Call = Callable[[], None]
MOST_WORKERS = 8
"""By default; a clock's own looks take one connection more."""


def count_workers(pool: Pool, wanted: int | None) -> int:
    """Return how many workers the pool has connections for, or just as many as were *wanted*.

    :raises ConfigError: when it has too few: a run would wait for a connection, and be late.
    """
    if wanted is not None and wanted < 1:
        raise ConfigError("a clock needs at least one worker")
    room = capacity(pool) - 1
    count = min(room, MOST_WORKERS) if wanted is None else wanted
    if not 1 <= count <= room:
        needed = max(count, 1) + 1
        raise ConfigError(
            f"a clock with {needed - 1} workers needs {needed} connections, one of them to look, "
            f"and the pool has {room + 1}: raise pool_size or max_overflow in "
            "SQLALCHEMY_ENGINE_OPTIONS, or take fewer workers"
        )
    return int(count)


def capacity(pool: Pool) -> float:
    """Return how many connections *pool* gives out; no public name tells of its overflow."""
    if not isinstance(pool, QueuePool) or pool._max_overflow < 0:
        return float("inf")
    return pool.size() + pool._max_overflow


class Workers:
    """*count* threads; they are daemons, so that the process can end with a call unfinished.

    A run that is cut off so is rolled back by the server. An executor of the standard library
    would keep the process until the last run has ended.
    """

    def __init__(self, count: int) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"cronlock-worker-{n}", daemon=True)
            for n in range(1, count + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Call) -> None:
        """Let the next free thread make *call*, which must not raise."""
        self._calls.put(call)

    def close(self, grace: float) -> int:
        """Drop what has not begun, wait up to *grace* seconds; return how many calls go on."""
        with suppress(Empty):
            while True:
                self._calls.get_nowait()
        for _ in self._threads:
            self._calls.put(None)
        until = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0, until - time.monotonic()))
        return sum(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
