"""The worker as a process: it takes rows of the queue until it is told to stop.

Any number may run at once, on any number of hosts.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from queue import Empty, SimpleQueue

from flask import Flask
from sqlalchemy import Pool

from ..durations import format_duration
from ..exceptions import ConfigError
from ..state import AppState
from ..workers import capacity
from .belt import Belt
from .connecting import Way

logger = logging.getLogger("flask_cronlock")

DEFAULT_COUNT = 4


class QueueWorker:
    """One process's worker: :meth:`run` returns after :meth:`stop`, which a signal may call.

    :param queues: as they are named in the database.
    :param count: how many rows may be in hand at once.
    :param grace: how long they may go on after :meth:`stop`; then they are cut off.
    :param until_empty: return when nothing is due.
    """

    def __init__(
        self,
        app: Flask,
        state: AppState,
        way: Way,
        queues: Sequence[str],
        count: int,
        grace: timedelta,
        until_empty: bool = False,
    ) -> None:
        self._belt = Belt(app, state, way, queues, count, until_empty)
        self._enabled, self._grace, self._until_empty = state.config.enabled, grace, until_empty
        self._news: SimpleQueue[str | BaseException] = SimpleQueue()
        self._about = ", ".join(queues), count, way

    def run(self) -> None:
        """Work until :meth:`stop`.

        The belt's thread does not keep the process: at the end of the grace that ends with calls
        unfinished. The server rolls back what they wrote, and others take their rows up.
        """
        _log("worker_started", "The worker began: queues %s; %d at once; %s.", *self._about)
        if self._enabled:
            threading.Thread(target=self._run_belt, name="cronlock-belt", daemon=True).start()
        else:
            words = "CRONLOCK_ENABLED is False, so the worker takes no queue row."
            logger.warning(words, extra={"action": "worker_idle"})
            if self._until_empty:
                self.stop()
        news = self._news.get()
        if news == "stop":
            news = self._wind_up()
        if isinstance(news, BaseException):
            raise news
        if in_hand := self._belt.in_hand:
            words = (
                "The worker stopped, and cut off %d queue rows, which others take up in a minute."
            )
            logger.warning(words, in_hand, extra={"action": "worker_stopped"})
        else:
            _log("worker_stopped", "The worker stopped.")

    def stop(self) -> None:
        """Let :meth:`run` come to its end."""
        self._news.put("stop")

    def _wind_up(self) -> str | BaseException:
        """Wait until all in hand has ended, or the grace has."""
        if not self._enabled:
            return "idle"
        self._belt.stop()
        words = "The worker stops: %d queue rows in hand have %s to end."
        _log("worker_stops", words, self._belt.in_hand, format_duration(self._grace))
        with suppress(Empty):
            return self._news.get(timeout=self._grace.total_seconds())
        return "cut off"

    def _run_belt(self) -> None:
        try:
            asyncio.run(self._belt.run())
        except BaseException as error:
            self._news.put(error)
        else:
            self._news.put("ended")


def count_rows_at_once(pool: Pool, wanted: int | None) -> int:
    """Return how many rows the app's pool has connections for, or just as many as were *wanted*.

    :raises ConfigError: when it has too few: a row would wait for a connection in a worker's hands.
    """
    if wanted is not None and wanted < 1:
        raise ConfigError("a worker needs a --concurrency of at least 1")
    room = capacity(pool)
    count = min(room, DEFAULT_COUNT) if wanted is None else wanted
    if count > room:
        raise ConfigError(
            f"a worker that has {count} rows in hand at once needs {count} connections, and the "
            f"pool has {room}: raise pool_size or max_overflow in SQLALCHEMY_ENGINE_OPTIONS, or "
            "take a lower --concurrency"
        )
    return int(count)


def _log(action: str, words: str, *about: object) -> None:
    logger.info(words, *about, extra={"action": action})
