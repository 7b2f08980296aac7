"""Whether what a session defers is kept with its transaction, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ..exceptions import CronLockError, DeferError, TransactionAborted

_DEFERRED = "cronlock_deferred"


def sure_connection(
    session: Session, engine: Engine, refusal: type[CronLockError] = DeferError
) -> Connection:
    """Return the connection of *session*'s transaction, in which rows of ours are to be written.

    :param refusal: raised when it is not one of *engine*, or in no transaction at all.
    """
    connection = session.connection()
    if connection.engine.pool is not engine.pool:
        raise refusal(
            "the session's own engine is not the app's default one, whose database the workers "
            "look into: give one that is bound to db.engine"
        )
    if _driver_of(connection).autocommit:
        raise refusal(
            "the session is in AUTOCOMMIT, so what is written for it would stay although the "
            "rest is rolled back: take isolation_level out of it"
        )
    if "cronlock" not in session.info:
        # A run looks after its own commit.
        _mind_commit(session, connection)
    return connection


@contextmanager
def all_or_nothing(session: Session) -> Iterator[None]:
    """Undo what is written in here if that does not come to its end.

    A commit or rollback of *session* in here, as by a generator, is its own business.
    """
    nested = session.begin_nested()
    try:
        yield
    except BaseException:
        with suppress(SQLAlchemyError):
            nested.rollback()
        raise
    if nested.is_active:
        nested.commit()


def mind_commits(session: Session, engine: Engine) -> None:
    """Have *session* refuse a commit on *engine* that would keep nothing of what was written."""

    def begun(_: Session, __: object, connection: Connection) -> None:
        if connection.engine.pool is engine.pool:
            _mind_commit(session, connection)

    event.listen(session, "after_begin", begun)


def _mind_commit(session: Session, connection: Connection) -> None:
    """Have *session* refuse a commit that the server would answer with ROLLBACK and no error."""
    if _DEFERRED not in session.info:
        event.listen(session, "before_commit", _refuse_aborted)
    session.info[_DEFERRED] = connection


def _refuse_aborted(session: Session) -> None:
    connection: Connection = session.info[_DEFERRED]
    if connection.closed or connection.invalidated:
        return
    if _driver_of(connection).info.transaction_status == TransactionStatus.INERROR:
        raise TransactionAborted


def _driver_of(connection: Connection) -> Any:
    return connection.connection.driver_connection
