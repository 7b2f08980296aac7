"""A connection borrowed from the app's pool, and given back as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast
from weakref import WeakSet

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, Pool

from .exceptions import ConfigError

_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Pool | Connection] = []


def watch_forks(engine: Engine) -> None:
    """Give a forked child of this process a pool of its own for *engine*.

    A socket that two processes share mixes up their answers, and advisory locks on it exclude
    neither. The child neither uses nor closes what it inherited: a close would end the parent's
    session.
    """
    _engines.add(engine)


def _leave_inherited() -> None:
    for engine in _engines:
        _inherited.append(engine.pool)
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_inherited)


class LentConnection(Connection):
    """A connection that only its borrower ends or gives back.

    A job that closed it would hand it to the pool, and so to another thread, in mid-run.

    :param refuse: raises while a job has the connection.
    """

    def __init__(self, engine: Engine, refuse: Callable[[], None]) -> None:
        super().__init__(engine)
        self._refuse = refuse

    def commit(self) -> None:
        self._refuse()
        super().commit()

    def rollback(self) -> None:
        self._refuse()
        super().rollback()

    def close(self) -> None:
        self._refuse()
        super().close()


class Borrowed:
    """One connection of *engine*, READ COMMITTED, not in autocommit, preparing nothing."""

    def __init__(self, engine: Engine, refuse: Callable[[], None]) -> None:
        if engine.dialect.name != "postgresql" or engine.driver != "psycopg":
            raise ConfigError(
                "the database must be PostgreSQL through psycopg 3: start "
                "SQLALCHEMY_DATABASE_URI with postgresql+psycopg://"
            )
        self._process = os.getpid()
        self.connection = LentConnection(engine, refuse)
        if not _is_idle(_driver_of(self.connection)):
            self.connection.invalidate()
        self._lent = self.connection.connection
        self.driver = _driver_of(self.connection)
        self._autocommit = self.driver.autocommit
        self._isolation_level = self.driver.isolation_level
        self._prepare_threshold = self.driver.prepare_threshold
        self.driver.autocommit = False
        self.driver.isolation_level = IsolationLevel.READ_COMMITTED
        # Behind a transaction pooler a prepared name can belong to another client, and then
        # another query runs: for a lock, one on another job's key.
        self.driver.prepare_threshold = None

    def give_back(self, broken: bool = False) -> None:
        """Roll back what is open, and return the connection as it was, or drop it when broken."""
        if os.getpid() != self._process:
            # Even a reference that is let go would roll back the parent's transaction.
            _inherited.append(self.connection)
            return
        if not self._lent.is_valid and not self.driver.closed:
            self.connection.close()  # The job gave it away below SQLAlchemy; it is not ours now.
            return
        try:
            if not broken and not self.driver.closed:
                self.driver.rollback()
                self.driver.autocommit = self._autocommit
                self.driver.isolation_level = self._isolation_level
                self.driver.prepare_threshold = self._prepare_threshold
        except psycopg.Error:
            broken = True
        if broken or self.driver.closed:
            self.connection.invalidate()
        self.connection.close()


def _driver_of(connection: Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _is_idle(driver: psycopg.Connection[Any]) -> bool:
    """Tell whether *driver* is open and in no transaction; what a pool left open is rolled back."""
    try:
        if driver.info.transaction_status != TransactionStatus.IDLE:
            driver.rollback()
    except psycopg.Error:
        return False
    return not driver.closed
