"""A connection that takes no write while a job has it."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy.pool import ConnectionPoolEntry

_BARRED = "cronlock_barred"


class Barred:
    """An idle connection of the pool, READ ONLY until it is put back."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self.is_back = False
        self._driver, self._before = driver, driver.read_only
        self._lock = threading.RLock()
        _change(driver, True)

    @property
    def is_idle(self) -> bool:
        """Tell whether it is in no transaction, which would end with it put back."""
        return self._driver.info.transaction_status == TransactionStatus.IDLE

    def put_back(self) -> None:
        """Let it be as it was, once: from then on it may be another job's."""
        with self._lock:
            if not self.is_back:
                _change(self._driver, self._before)
                self.is_back = True


def make_read_only(driver: psycopg.Connection[Any], record: ConnectionPoolEntry) -> Barred:
    """Bar what was just taken from the pool; two apps on one engine may both ask for it."""
    barred: Barred | None = record.info.get(_BARRED)
    if barred is None or barred.is_back:
        barred = record.info[_BARRED] = Barred(driver)
    return barred


def is_barred(info: dict[Any, Any]) -> bool:
    """Tell it by the *info* of a connection."""
    return _BARRED in info


def put_back(driver: Any, record: ConnectionPoolEntry) -> None:
    """Put back what comes back to the pool; one without a *driver* was dropped."""
    barred: Barred | None = record.info.pop(_BARRED, None)
    if barred is not None and driver is not None:
        barred.put_back()


def _change(driver: psycopg.Connection[Any], read_only: bool | None) -> None:
    """Change a connection in no transaction; a broken one is found out by who uses it next."""
    with suppress(psycopg.Error):
        driver.rollback()
        driver.read_only = read_only
