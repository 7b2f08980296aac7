"""The watch over a job: what it does in sessions and on connections beside the run's.

Neither the run's commit nor its rollback reaches those. While a job has a second connection of the
run's engine, the server takes no write on it: it fails before it can be committed. Work under a
bare lock is only told of it: what it writes there is under the lock all the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import psycopg
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy import Engine, ExceptionContext, event
from sqlalchemy.exc import PendingRollbackError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from .barred import Barred, is_barred, make_read_only, put_back
from .sqlerrors import driver_error, sqlstate

logger = logging.getLogger("flask_cronlock")

READ_ONLY = "25006"
ABORTED = "25P02"
CURE = "Use db.session in the context that the work is called in."
READS = (
    "The job has a second connection of the run's engine: it is for reading only, where no option "
    "says otherwise, and what the run wrote is not seen there. " + CURE
)
REFUSED = "A write on a second connection, apart from the run, was refused. " + CURE
SESSION = (
    "A second session is used, in an app context for one: what the run or lock wrote is not seen "
    "there, and what is added there and not flushed is lost. " + CURE
)
APART = (
    "A second connection of the engine is used: what the run or lock wrote is not seen there, and "
    "what is written there is kept or lost apart from it. " + CURE
)


@dataclass(slots=True)
class Watch:
    """The run's own engine and session, and what was seen beside them."""

    engine: Engine | None
    session: Session | None
    bars: bool
    """Second connections of the engine are READ ONLY."""
    told: set[str] = field(default_factory=set)
    barred: list[Barred] = field(default_factory=list)
    refusals: WeakSet[psycopg.Error] = field(default_factory=WeakSet)
    refused: bool = False
    """There was a refusal, though the job may have swallowed it."""

    def end(self) -> None:
        """Bar and tell nothing any more: a copy of the context, a thread's say, outlives the job.

        What is kept beyond the job takes writes again, unless it is in the middle of a transaction.
        """
        self.engine = self.session = None
        for barred in self.barred:
            if barred.is_idle:
                barred.put_back()

    def bar(self, driver: psycopg.Connection[Any], record: ConnectionPoolEntry) -> None:
        """Make a second connection READ ONLY."""
        self.barred = [barred for barred in self.barred if not barred.is_back]
        self.barred.append(make_read_only(driver, record))

    def refuse(self, error: psycopg.Error) -> None:
        """Take *error*, of a barred connection, for a refused write or for what comes of one."""
        self.refusals.add(error)
        self.refused = True
        self.tell(REFUSED)

    def wrote_elsewhere(self, error: BaseException) -> bool:
        """Tell whether *error* is, or comes of, a write that was refused on a second connection.

        An error that SQLAlchemy has not seen does not say whose it is.
        """
        if isinstance(error, PendingRollbackError):
            return self.refused
        said = driver_error(error)
        below = said is error and bool(self.barred) and sqlstate(error) == READ_ONLY
        return below or (said is not None and said in self.refusals)

    def tell(self, text: str, level: int = logging.WARNING) -> None:
        """Say, once, that the job works where neither the run's commit nor its rollback reaches."""
        if self.engine is None or text in self.told:
            return
        self.told.add(text)
        logger.log(level, text, extra={"action": "second_transaction"})


_watch: ContextVar[Watch | None] = ContextVar("cronlock_watch", default=None)
if hasattr(os, "register_at_fork"):
    # A forked child's connections are its own, like a thread's.
    os.register_at_fork(after_in_child=lambda: _watch.set(None))


@contextmanager
def watching(engine: Engine, session: Session, bars: bool) -> Iterator[Watch]:
    """Watch, in this context, over work that is to be done in *session* alone.

    :param bars: whether its second connections of *engine* are to take no writes.
    """
    watch = Watch(engine, session, bars)
    try:
        _watch.set(watch)
        yield watch
    finally:
        # First of all: with a watch that was left, the thread's connections would take no writes.
        _watch.set(None)
        watch.end()


def watch_transactions(engine: Engine) -> None:
    """Let a job have second connections of *engine* for reading only, and tell of them.

    The pool is listened to, not the engine: each statement of the app would pay for that. What is
    listened to while other threads use it cannot be taken up and left with each run.
    """

    def look_at(driver: Any, record: ConnectionPoolEntry, _: object) -> None:
        watch = _watch.get()
        if watch is None or watch.engine is not engine:
            return
        if not watch.bars or _in_autocommit(engine, driver):
            watch.tell(APART)
            return
        watch.bar(driver, record)
        if not watch.told:
            watch.tell(READS, logging.INFO)

    event.listen(engine, "checkout", look_at, insert=True)
    event.listen(engine, "checkin", put_back)
    event.listen(engine, "handle_error", _note_refusal, insert=True)


def _in_autocommit(engine: Engine, driver: psycopg.Connection[Any]) -> bool:
    """Tell whether the server takes each statement for a transaction of its own, never READ ONLY.

    SQLAlchemy goes by the engine's option after the connection was taken from the pool.
    """
    level = engine.get_execution_options().get("isolation_level")
    return driver.autocommit if level is None else level == "AUTOCOMMIT"


def _note_refusal(context: ExceptionContext) -> None:
    watch, error, connection = _watch.get(), context.original_exception, context.connection
    if watch is None or connection is None or not isinstance(error, psycopg.Error):
        return
    counts = error.sqlstate == READ_ONLY or (watch.refused and error.sqlstate == ABORTED)
    if counts and is_barred(connection.info):
        watch.refuse(error)


# Whatever a session does first begins its transaction, add() too. One that is dropped before it is
# flushed takes no connection, and its objects are lost.
@event.listens_for(FlaskSession, "after_transaction_create")
def _warn_of_second_session(session: Session, _: object) -> None:
    watch = _watch.get()
    if watch is not None and session is not watch.session:
        watch.tell(SESSION)
