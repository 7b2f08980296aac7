"""The run's ``db.session``: joined to the guarded transaction by savepoints.

The job's own ``commit()``, ``rollback()`` and ``close()`` end a savepoint, never the transaction
that holds the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, event, literal, select, text
from sqlalchemy.exc import PendingRollbackError, SQLAlchemyError
from sqlalchemy.orm import ORMExecuteState, Session

from .borrowed import LentConnection
from .exceptions import (
    DirtySession,
    ForeignObject,
    ForeignTransaction,
    IsolationFixed,
    LockLost,
    RunError,
    SessionReplaced,
)
from .joined import joined_class
from .watch import watching

logger = logging.getLogger("flask_cronlock")

JOINED: dict[str, Any] = {
    "join_transaction_mode": "create_savepoint",
    "twophase": False,
    "autobegin": True,
    "close_resets_only": True,
}
"""What a joined session is made with, whatever the app's ``session_options`` say."""
READ = select(literal(1))
UNREAD = "the job left a stream, a COPY or a pipeline open; end each in a `with`, or read it whole"
WROTE = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")


def _refuse_isolation(_: Connection, options: dict[str, Any]) -> None:
    if "isolation_level" in options:
        raise IsolationFixed


def _refuse_split(session: Session) -> None:
    """Raise before the job begins, where the app's session sends plain reads elsewhere."""
    try:
        session.get_bind(clause=READ)
    except RunError:
        raise
    except Exception:
        logger.debug("The app's get_bind() knows no engine before the job.", exc_info=True)


@contextmanager
def joined_session(
    db: SQLAlchemy, connection: LentConnection, alone: bool = True
) -> Iterator[Session]:
    """Put a job's session that writes through *connection* into ``db.session``; commit it.

    :param alone: whether writes on other connections of the same engine are refused.
    :raises SessionReplaced: at the end, when ``db.session`` is another one by then.
    :raises ForeignTransaction: when there were such writes.
    """
    engine = connection.engine
    with lent_session(db, connection) as session, watching(engine, session, alone) as watch:
        try:
            _refuse_split(session)
            yield session
            if connection.end_stream():
                raise LockLost(UNREAD)
            if _is_replaced(db, session):
                raise SessionReplaced
            session.commit()
        except Exception as error:
            if isinstance(error, PendingRollbackError) and not session.is_active:
                raise LockLost from error
            if not watch.wrote_elsewhere(error):
                raise
            kind = SessionReplaced if _is_replaced(db, session) else ForeignTransaction
            raise kind from error


@contextmanager
def lent_session(db: SQLAlchemy, connection: LentConnection) -> Iterator[Session]:
    """Put a session that writes through *connection* into ``db.session`` for this app context.

    What else is done meanwhile, in other sessions and on other connections, is not watched.
    """
    factory = db.session.session_factory
    session = joined_class(factory.class_)(**{**factory.kw, **JOINED})
    session.cronlock_connection = connection  # type: ignore[attr-defined]
    session.info["cronlock"] = True
    db.session.registry.set(session)  # type: ignore[arg-type]
    event.listen(connection, "set_connection_execution_options", _refuse_isolation)
    try:
        yield session
    finally:
        connection.end_stream()
        if db.session.registry.has() and db.session.registry() is not session:
            _close_quietly(db.session())
        _close_quietly(session)
        db.session.registry.clear()


def _is_replaced(db: SQLAlchemy, session: Session) -> bool:
    return not db.session.registry.has() or db.session.registry() is not session


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
    it writes is committed or lost apart from it. What goes through ``outer.connection()``, below
    the session, is not seen.
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
