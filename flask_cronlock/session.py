"""The run's ``db.session``: joined to the guarded transaction by savepoints.

The job's own ``commit()``, ``rollback()`` and ``close()`` end a savepoint, never the transaction
that holds the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import PendingRollbackError, SQLAlchemyError
from sqlalchemy.orm import ORMExecuteState, Session

from .exceptions import DirtySession, ForeignEngine, ForeignObject, LockLost, SessionReplaced

logger = logging.getLogger("flask_cronlock")

JOINED: dict[str, Any] = {
    "join_transaction_mode": "create_savepoint",
    "twophase": False,
    "autobegin": True,
    "close_resets_only": True,
}
"""What a joined session is made with, whatever the app's ``session_options`` say."""
WROTE = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")


@dataclass(slots=True)
class _Watch:
    """The run's connection, and whether the job was warned of another one."""

    connection: Connection
    warned: bool = False


_watch: ContextVar[_Watch | None] = ContextVar("cronlock_watch", default=None)


def watch_transactions(engine: Engine) -> None:
    """Warn of a job that begins a second transaction on *engine*, where no rollback reaches it."""
    event.listen(engine, "begin", _warn_of_second_transaction)


def _warn_of_second_transaction(connection: Connection) -> None:
    watch = _watch.get()
    if watch is None or watch.warned or connection is watch.connection:
        return
    watch.warned = True
    logger.warning(
        "The job began a second transaction on its own database, in an app context or on a "
        "connection of its own: what it writes there is kept or lost apart from the run. Use "
        "db.session in the context that the job is called in.",
        extra={"action": "second_transaction"},
    )


@cache
def _joined_class(base: type[Session]) -> type[Session]:
    """Return the app's own session class, with the default engine led to the run's connection."""

    class JoinedSession(base):  # type: ignore[valid-type,misc]
        cronlock_connection: Connection
        cronlock_warned = False

        def get_bind(self, *args: Any, **kwargs: Any) -> Engine | Connection:
            bind: Engine | Connection = super().get_bind(*args, **kwargs)
            ours = self.cronlock_connection.engine
            if bind.engine is ours:
                return self.cronlock_connection
            if bind.engine.pool is ours.pool:
                raise ForeignEngine
            self._warn_of_writes_outside(bind, kwargs.get("clause"))
            return bind

        def _warn_of_writes_outside(self, bind: Engine | Connection, clause: Any) -> None:
            writes = self._flushing or getattr(clause, "is_dml", False)
            if self.cronlock_warned or not writes:
                return
            self.cronlock_warned = True
            logger.warning(
                "The job writes to another database (%s): that commits on its own, outside the "
                "run's transaction, so it can be kept although the run fails.",
                bind.engine.url.database,
                extra={"action": "other_bind_written"},
            )

    return JoinedSession


@contextmanager
def joined_session(db: SQLAlchemy, connection: Connection) -> Iterator[Session]:
    """Put a session that writes through *connection* into ``db.session`` for this app context.

    :raises SessionReplaced: at the end, when ``db.session`` is another one by then.
    """
    factory = db.session.session_factory
    session = _joined_class(factory.class_)(**{**factory.kw, **JOINED})  # type: ignore[arg-type]
    session.cronlock_connection = connection  # type: ignore[attr-defined]
    db.session.registry.set(session)  # type: ignore[arg-type]
    watching = _watch.set(_Watch(connection))
    try:
        yield session
        if not db.session.registry.has() or db.session.registry() is not session:
            raise SessionReplaced
        session.commit()
    except PendingRollbackError as swallowed:
        raise LockLost from swallowed
    finally:
        _watch.reset(watching)
        if db.session.registry.has() and db.session.registry() is not session:
            _close_quietly(db.session())
        _close_quietly(session)
        db.session.registry.clear()


def _close_quietly(session: Session) -> None:
    """Close *session*; on a broken connection its rollback fails, and there is nothing to undo.

    In a forked child it is refused.
    """
    try:
        session.close()
    except (SQLAlchemyError, LockLost):
        logger.debug("The run's session could not be closed.", exc_info=True)


def end_clean_transaction(db: SQLAlchemy) -> None:
    """End the caller's open transaction, so that a run needs no second connection.

    :raises DirtySession: when it holds writes, flushed or not; they are left as they are.
    """
    if not db.session.registry.has():
        return
    session: Session = db.session()
    if session.new or session.dirty or session.deleted:
        raise DirtySession
    connections = _connections(session)
    if not any(connection.engine.pool is db.engine.pool for connection in connections):
        return
    if any(_has_written(connection) for connection in connections):
        raise DirtySession
    session.rollback()


def _connections(session: Session) -> set[Connection]:
    # SQLAlchemy tells of no other way to ask a session for its connections without making one.
    transaction = session.get_transaction()
    return {entry[0] for entry in transaction._connections.values()} if transaction else set()


def _has_written(connection: Connection) -> bool:
    """Ask the server, which alone knows of flushed and of raw writes; another kind may have any."""
    if connection.dialect.name != "postgresql":
        return True
    try:
        return bool(connection.execute(WROTE).scalar())
    except SQLAlchemyError:
        return False


def _pending(session: Session) -> set[int]:
    """Return the identities of what is to be flushed; mapped objects need not be hashable."""
    return {id(item) for item in (*session.dirty, *session.new, *session.deleted)}


@contextmanager
def closed_off(outer: Session | None) -> Iterator[None]:
    """Refuse what the work does through *outer*, the caller's session, while a lock is held.

    It runs on another connection than the lock's: what it reads is older than the lock, and what
    it writes is committed or lost apart from it.
    """
    if outer is None:
        yield
        return

    def refuse(*_: Any) -> None:
        raise ForeignObject

    def refuse_query(_: ORMExecuteState) -> None:
        raise ForeignObject

    before = _pending(outer)
    event.listen(outer, "do_orm_execute", refuse_query)
    event.listen(outer, "before_flush", refuse)
    try:
        yield
        if _pending(outer) - before:
            raise ForeignObject
    finally:
        event.remove(outer, "do_orm_execute", refuse_query)
        event.remove(outer, "before_flush", refuse)
