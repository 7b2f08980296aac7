"""A time in which the database does not answer a worker: told once, and once that it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ..sqlerrors import driver_error
from ..telling import known_words
from ..texts import error_text

logger = logging.getLogger("flask_cronlock")

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds between tries."""


class Outage:
    """What goes on until it works again; *lost* and *again* are the words for that."""

    def __init__(self, lost: str, again: str, secrets: Iterable[bytes]) -> None:
        self._lost, self._again, self._secrets = lost, again, tuple(secrets)
        self._failures = 0

    def note(self, error: Exception) -> float:
        """Tell of the first *error*, and return how many seconds to wait before the next try."""
        if not self._failures:
            told = known_words(error, self._secrets)
            told = told or error_text(driver_error(error) or error, self._secrets)
            logger.warning("%s: %s", self._lost, told, extra={"action": "worker_waits"})
        self._failures += 1
        return PAUSES[min(self._failures, len(PAUSES)) - 1]

    @property
    def lasts(self) -> bool:
        return self._failures > 0

    def end(self) -> None:
        """Tell that it works again, if it did not."""
        if self._failures:
            logger.info("%s.", self._again, extra={"action": "worker_resumed"})
        self._failures = 0
