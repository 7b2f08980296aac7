"""The run's ``db.session``: joined to the guarded transaction by savepoints.

The job's own ``commit()``, ``rollback()`` and ``close()`` end a savepoint, never the transaction
that holds the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import ORMExecuteState, Session

from .exceptions import DirtySession, ForeignObject, SessionReplaced

logger = logging.getLogger("flask_cronlock")

WROTE = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")


@cache
def _joined_class(base: type[Session]) -> type[Session]:
    """Return the app's own session class, with the default engine led to the run's connection."""

    class JoinedSession(base):  # type: ignore[valid-type,misc]
        cronlock_connection: Connection
        cronlock_warned = False

        def get_bind(self, *args: Any, **kwargs: Any) -> Engine | Connection:
            bind: Engine | Connection = super().get_bind(*args, **kwargs)
            if bind.engine is self.cronlock_connection.engine:
                return self.cronlock_connection
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
    options = {**factory.kw, "join_transaction_mode": "create_savepoint", "twophase": False}
    session = _joined_class(factory.class_)(**options)  # type: ignore[arg-type]
    session.cronlock_connection = connection  # type: ignore[attr-defined]
    db.session.registry.set(session)  # type: ignore[arg-type]
    try:
        yield session
        if not db.session.registry.has() or db.session.registry() is not session:
            raise SessionReplaced
        session.commit()
    finally:
        db.session.registry.clear()
        _close_quietly(session)


def _close_quietly(session: Session) -> None:
    """Close *session*; on a broken connection its rollback fails, and there is nothing to undo."""
    try:
        session.close()
    except SQLAlchemyError:
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
    if session.in_transaction():
        if _has_written(session):
            raise DirtySession
        session.rollback()


def _has_written(session: Session) -> bool:
    """Ask the server, which alone knows of flushed and of raw writes."""
    transaction = session.get_transaction()
    assert transaction is not None
    if not transaction._connections:
        return False
    try:
        return bool(session.execute(WROTE).scalar())
    except SQLAlchemyError:
        return False


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

    before = set(outer.dirty) | set(outer.new) | set(outer.deleted)
    event.listen(outer, "do_orm_execute", refuse_query)
    event.listen(outer, "before_flush", refuse)
    try:
        yield
        if {*outer.dirty, *outer.new, *outer.deleted} - before:
            raise ForeignObject
    finally:
        event.remove(outer, "do_orm_execute", refuse_query)
        event.remove(outer, "before_flush", refuse)
