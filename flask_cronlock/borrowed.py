"""A connection borrowed from the app's pool, and given back as it was."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, cast
from weakref import WeakSet

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, ExceptionContext, Pool, event
from sqlalchemy.pool import (
    AssertionPool,
    ConnectionPoolEntry,
    PoolResetState,
    SingletonThreadPool,
    StaticPool,
)

from .exceptions import ConfigError

logger = logging.getLogger("flask_cronlock")

SHARING_POOLS = (StaticPool, SingletonThreadPool, AssertionPool)
_BEFORE = "cronlock_before"
_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Pool | Connection] = []


def watch_engine(engine: Engine) -> None:
    """See to it that connections of *engine* come back as they were, and stay in their process.

    A forked child of this process gets a pool of its own: a socket that two processes share mixes
    up their answers, and advisory locks on it exclude neither. The child neither uses nor closes
    what it inherited: a close would end the parent's session.
    """
    _engines.add(engine)
    event.listen(engine, "reset", _restore)
    event.listen(engine, "handle_error", _note_error)


def _note_error(context: ExceptionContext) -> None:
    lent, error = context.connection, context.original_exception
    if isinstance(lent, LentConnection) and isinstance(error, psycopg.Error):
        lent.errors.add(error)


def _leave_inherited() -> None:
    for engine in _engines:
        _inherited.append(engine.pool)
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_inherited)


def _restore(driver: Any, record: ConnectionPoolEntry, _: PoolResetState) -> None:
    """Put back what a borrower changed, on whichever way the connection came to the pool.

    Before SQLAlchemy puts back what it changed itself for the engine's options.
    """
    before = record.info.pop(_BEFORE, None)
    if before is None or driver is None or driver.closed:
        return
    if driver.info.transaction_status != TransactionStatus.IDLE:
        driver.rollback()
    driver.autocommit, driver.isolation_level, driver.prepare_threshold = before


def note_commit(connection: Connection) -> None:
    """Let SQLAlchemy know of a COMMIT that was made below it, and with it the app's listeners."""
    try:
        connection.commit()
    except Exception:
        logger.exception(
            "A commit listener of the app raised; the commit stands.",
            extra={"action": "listener_failed"},
        )


class LentConnection(Connection):
    """A connection that only its borrower ends or gives back.

    A job that closed it would hand it to the pool, and so to another thread, in mid-run.

    :param refuse: raises while a job has the connection.
    """

    def __init__(self, engine: Engine, refuse: Callable[[], None]) -> None:
        super().__init__(engine)
        self._refuse = refuse
        self.driver = _driver_of(self)
        self.broken: bool | None = None
        """How it was given back; it may be somebody else's since."""
        self.errors: WeakSet[psycopg.Error] = WeakSet()
        """What the database or driver said on it, and on no other one."""

    @property
    def gone(self) -> bool:
        """Tell whether it is, or was when it was given back, broken."""
        return self.driver.closed if self.broken is None else self.broken

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
        if isinstance(engine.pool, SHARING_POOLS):
            raise ConfigError(
                f"a {type(engine.pool).__name__} gives the run a connection that others use: leave "
                "out poolclass, or set it to QueuePool or NullPool"
            )
        self._process = os.getpid()
        self.connection = LentConnection(engine, refuse)
        if not _is_idle(self.connection.driver):
            self.connection.invalidate()
        self._lent = self.connection.connection
        self.driver = self.connection.driver = _driver_of(self.connection)
        self.connection.info[_BEFORE] = (
            self.driver.autocommit,
            self.driver.isolation_level,
            self.driver.prepare_threshold,
        )
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
        except psycopg.Error:
            broken = True
        self.connection.broken = broken or self.driver.closed
        try:
            if self.connection.broken:
                self.connection.invalidate()
            self.connection.close()
        except Exception:
            self.driver.close()
            logger.exception(
                "A pool listener of the app raised; the run's outcome stands.",
                extra={"action": "listener_failed"},
            )


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
