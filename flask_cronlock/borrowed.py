"""A connection borrowed from the app's pool, and given back as it was."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakSet

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy import Connection, Engine, Pool, event
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
_PUT_BACK = (
    "autocommit",
    "isolation_level",
    "prepare_threshold",
    "read_only",
    "row_factory",
    "cursor_factory",
)
"""What a borrower, or a job, changes of the driver's connection."""
_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Pool | Connection] = []


def mind_engine(engine: Engine) -> None:
    """See to it that connections of *engine* come back as they were, and stay in their process.

    A forked child of this process gets a pool of its own: a socket that two processes share mixes
    up their answers, and advisory locks on it exclude neither. The child neither uses nor closes
    what it inherited: a close would end the parent's session.
    """
    _engines.add(engine)
    event.listen(engine, "reset", _restore)


def _leave_inherited() -> None:
    for engine in _engines:
        _inherited.append(engine.pool)
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_inherited)


def _restore(driver: Any, record: ConnectionPoolEntry | None, _: PoolResetState) -> None:
    """Put back what a borrower changed, on whichever way the connection came to the pool.

    Before SQLAlchemy puts back what it changed itself for the engine's options. A detached one
    comes to no pool, and has no record.
    """
    before = record.info.pop(_BEFORE, None) if record else None
    if before is None or driver is None or driver.closed:
        return
    if driver.info.transaction_status != TransactionStatus.IDLE:
        driver.rollback()
    for name, value in zip(_PUT_BACK, before, strict=True):
        setattr(driver, name, value)


def note_commit(connection: Connection) -> None:
    """Let SQLAlchemy know of a COMMIT that was made below it, and with it the app's listeners."""
    try:
        connection.commit()
    except Exception:
        logger.exception(
            "A commit listener of the app raised; the commit stands.",
            extra={"action": "listener_failed"},
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """What a lent connection is like."""

    broken: bool
    given_away: bool
    """Whether the job gave it to the pool, or closed it, below SQLAlchemy."""
    whole: bool
    """Whether it is in a transaction that can go on."""

    @property
    def gone(self) -> bool:
        return self.broken or self.given_away


class LentConnection(Connection):
    """A connection that only its borrower ends or gives back.

    A job that closed it would hand it to the pool, and so to another thread, in mid-run.

    :param refuse: raises while a job has the connection.
    """

    def __init__(self, engine: Engine, refuse: Callable[[], None]) -> None:
        super().__init__(engine)
        self._refuse, self._process = refuse, os.getpid()
        if not _is_idle(_driver_of(self)):
            self.invalidate()
        self.driver, self._pooled = _driver_of(self), self.connection
        self.left: Condition | None = None
        """How it was given back; it may be somebody else's since."""
        self.errors: WeakSet[psycopg.Error] = WeakSet()
        """What the database said on it, and on no other one, of an abort that was undone."""

    @property
    def condition(self) -> Condition:
        """What it is like, or was like when it was given back."""
        return self.left or self.look()

    def look(self) -> Condition:
        """Return what it is like now."""
        return Condition(
            broken=self.driver.closed,
            given_away=not self.invalidated and not self._pooled.is_valid,
            whole=self.driver.info.transaction_status == TransactionStatus.INTRANS,
        )

    @property
    def inherited(self) -> bool:
        """Tell whether this is a forked child of the borrower, which must not touch it."""
        return os.getpid() != self._process

    def end_stream(self) -> bool:
        """Close it where a job left an answer unread, and tell whether one was.

        psycopg would wait until that is read, in the thread that was to read it: for ever.
        """
        pgconn = self.driver.pgconn
        unread = pgconn.transaction_status == TransactionStatus.ACTIVE
        unread = unread or pgconn.pipeline_status != PipelineStatus.OFF
        if unread and not self.inherited:
            self.driver.close()
        return unread

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
    """One connection of *engine*, READ COMMITTED, not in autocommit, preparing nothing.

    Nor is it read-only, unless the server is.
    """

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
        self.connection = LentConnection(engine, refuse)
        self.driver = self.connection.driver
        self.connection.info[_BEFORE] = [getattr(self.driver, name) for name in _PUT_BACK]
        self.driver.autocommit = False
        self.driver.isolation_level = IsolationLevel.READ_COMMITTED
        # Behind a transaction pooler a prepared name can belong to another client, and then
        # another query runs: for a lock, one on another job's key.
        self.driver.prepare_threshold = None
        # Not False: what the server says of itself is to be found out.
        self.driver.read_only = None

    def give_back(self, broken: bool = False) -> None:
        """Roll back what is open, and return the connection as it was, or drop it when broken."""
        if self.connection.inherited:
            # Even a reference that is let go would roll back the parent's transaction.
            _inherited.append(self.connection)
            return
        found = self.connection.left = self.connection.look()
        if found.given_away:
            self.connection.close()  # It is not ours now.
            return
        try:
            if not broken and not self.driver.closed:
                self.driver.rollback()
        except psycopg.Error:
            broken = True
        broken = broken or self.driver.closed
        self.connection.left = replace(found, broken=broken)
        try:
            if broken:
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
