"""The watch over a job: what it does in sessions and on connections beside the run's.

Neither the run's commit nor its rollback reaches those. While a job has a second connection of the
run's engine, the server takes no write on it: it fails before it can be committed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from .sqlerrors import sqlstate

logger = logging.getLogger("flask_cronlock")

READ_ONLY = "25006"
_BEFORE = "cronlock_before_watch"


@dataclass(slots=True)
class Watch:
    """The run's own engine and session, and what was seen beside them."""

    engine: Engine | None
    session: Session | None
    warned: bool = False
    held: bool = False
    """A second connection of the engine is, or was, read-only."""

    def end(self) -> None:
        """Hold and say nothing any more: a copied context, of a thread's for one, lives longer."""
        self.warned, self.engine, self.session = True, None, None

    def refused(self, error: BaseException) -> bool:
        """Tell whether *error* is a write that was refused on a second connection."""
        return self.held and sqlstate(error) == READ_ONLY

    def warn(self) -> None:
        """Say, once, that the job works where neither the run's commit nor its rollback reaches."""
        if self.warned:
            return
        self.warned = True
        logger.warning(
            "The job uses a second session or transaction, in an app context or on a connection of "
            "its own: what the run wrote is not seen there, and what is written there is refused, "
            "or kept or lost apart from the run. Use db.session in the context that the job is "
            "called in.",
            extra={"action": "second_transaction"},
        )


_watch: ContextVar[Watch | None] = ContextVar("cronlock_watch", default=None)
if hasattr(os, "register_at_fork"):
    # A forked child's connections are its own, like a thread's.
    os.register_at_fork(after_in_child=lambda: _watch.set(None))


@contextmanager
def watching(engine: Engine, session: Session) -> Iterator[Watch]:
    """Watch, in this context, over a job that is to work in *session* alone."""
    watch = Watch(engine, session)
    before = _watch.set(watch)
    try:
        yield watch
    finally:
        watch.end()
        _watch.reset(before)


def watch_transactions(engine: Engine) -> None:
    """Let a job have second connections of *engine* for reading only, and warn of them.

    The pool is listened to, not the engine: each statement of the app would pay for that. What is
    listened to while other threads use it cannot be taken up and left with each run.
    """

    def hold(driver: Any, record: ConnectionPoolEntry, _: object) -> None:
        watch = _watch.get()
        if watch is None:
            return
        watch.warn()
        if watch.engine is not engine:
            return
        watch.held = True
        record.info[_BEFORE] = driver.autocommit, driver.read_only
        _set(driver, False, True)

    event.listen(engine, "checkout", hold, insert=True)
    event.listen(engine, "checkin", _let_go)


def _let_go(driver: Any, record: ConnectionPoolEntry) -> None:
    before = record.info.pop(_BEFORE, None)
    if before is not None and driver is not None:
        _set(driver, *before)


def _set(driver: psycopg.Connection[Any], autocommit: bool, read_only: bool | None) -> None:
    """Change an idle connection; a broken one is found out by whoever uses it next."""
    with suppress(psycopg.Error):
        driver.rollback()
        driver.autocommit, driver.read_only = autocommit, read_only


# Whatever a session does first begins its transaction, add() too. One that is dropped before it is
# flushed takes no connection, and its objects are lost.
@event.listens_for(FlaskSession, "after_transaction_create")
def _warn_of_second_session(session: Session, _: object) -> None:
    watch = _watch.get()
    if watch is not None and session is not watch.session:
        watch.warn()
