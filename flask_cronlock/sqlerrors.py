"""What a database error means; told by SQLSTATE and the connection's state, not by its text, but
for PgBouncer's: it has one code for all, and one language."""

from __future__ import annotations

import sys

import psycopg
from sqlalchemy.exc import DBAPIError, PendingRollbackError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from .borrowed import LentConnection
from .exceptions import (
    CronLockError,
    DatabaseUnreachable,
    Interrupted,
    JobTimeout,
    LockLost,
    NoFreeConnection,
    NotInTime,
    RightsMissing,
    RunError,
    StatementPooling,
    TablesLocked,
    TablesMissing,
    TransactionEnded,
    TransactionLost,
    Unavailable,
)

LOCK_NOT_AVAILABLE = "55P03"
CANCELED = "57014"
POOLER = "08P01"
NO_TRANSACTIONS = "statement pooling"
"""What PgBouncer says of BEGIN where its pool_mode is statement."""
NO_BACKEND = "query_wait_timeout"
"""What it says when none of its connections came free."""
TOO_LONG = "query timeout"
"""What it says of a statement that outlived its query_timeout."""
TIMED_OUT = {
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
}
BY_THE_JOB = {
    "25P01",  # no transaction is open
    "3B001",  # a savepoint is gone, and so is the transaction that it was in
}
ENDED = {
    *BY_THE_JOB,
    "25P02",  # the transaction is aborted
    "57P01",  # terminated by an administrator, or by a contender
    "57P02",  # crash of the server
    POOLER,  # its limit
}
UNAVAILABLE: dict[str, type[Unavailable]] = {
    "42P01": TablesMissing,  # undefined table
    "42703": TablesMissing,  # undefined column
    "3F000": TablesMissing,  # undefined schema
    "42501": RightsMissing,
    LOCK_NOT_AVAILABLE: TablesLocked,
}
UNREACHABLE_CLASSES = {
    "08",  # the connection failed
    "28",  # the role was not let in
    "3D",  # no such database
    "53",  # out of connections, memory or disk
    "55",  # an object is in use, or not in the state that is needed
    "57",  # shut down
}


def driver_error(error: BaseException | None) -> psycopg.Error | None:
    """Return psycopg's error at the root of *error*, if there is one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, psycopg.Error):
            return error
        error = error.orig if isinstance(error, DBAPIError) else error.__cause__
    return None


def sqlstate(error: BaseException) -> str | None:
    """Return the code that the server gave *error*; ``None`` where it gave none."""
    found = driver_error(error)
    return found.sqlstate if found else None


def waited_for_row(error: BaseException) -> bool:
    """Tell whether a ``lock_timeout`` was up while waiting for another's row, not for a table.

    Only a row has a context: ``while inserting index tuple (0,2) in relation "cronlock_run"``.
    """
    found = driver_error(error)
    if found is None or found.sqlstate != LOCK_NOT_AVAILABLE:
        return False
    return found.diag.context is not None


def broke_connection(error: BaseException) -> bool:
    """Tell whether SQLAlchemy dropped the connection because of *error*."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _timed_out(error: BaseException) -> bool:
    """Tell whether the server ended the transaction for its length, or for being idle."""
    return sqlstate(error) in TIMED_OUT


def _canceled(error: BaseException) -> bool:
    """Tell whether the statement was cancelled: by ``statement_timeout``, or by an operator."""
    return sqlstate(error) == CANCELED


def as_unavailable(error: BaseException, late: bool = False) -> Unavailable | None:
    """Return why no run is possible now; ``None`` where *error* is one of ours, or tells of
    something else.

    :param late: the time that was given has passed.
    """
    if isinstance(error, PoolTimeout):
        return NoFreeConnection()
    found = driver_error(error)
    if found is None or isinstance(error, CronLockError):
        return None
    if found.sqlstate is None:
        return DatabaseUnreachable() if isinstance(found, psycopg.OperationalError) else None
    if found.sqlstate == POOLER:
        return _of_pooler(str(found))
    if _timed_out(found) or _canceled(found):
        return NotInTime() if late else Interrupted()
    if (kind := UNAVAILABLE.get(found.sqlstate)) is not None:
        return kind()
    return DatabaseUnreachable() if found.sqlstate[:2] in UNREACHABLE_CLASSES else None


def _of_pooler(said: str) -> Unavailable:
    known = {NO_TRANSACTIONS: StatementPooling, NO_BACKEND: NoFreeConnection, TOO_LONG: Interrupted}
    return next((kind() for words, kind in known.items() if words in said), DatabaseUnreachable())


def before_work(error: BaseException, late: bool) -> Unavailable | None:
    """Return what *error* means for a transaction that held no lock, or none yet."""
    if isinstance(error, JobTimeout):
        return NotInTime()
    return TransactionLost() if isinstance(error, LockLost) else as_unavailable(error, late)


def note_raised(lent: LentConnection, *_: object) -> None:
    """Note what is being raised while an abort of the run's connection is undone.

    After that nothing tells whose error it was: SQLAlchemy hears nothing of a raw cursor's.
    """
    said = driver_error(sys.exc_info()[1])
    if said is not None and not lent.look().whole:
        lent.errors.add(said)


def meaning(error: BaseException, lent: LentConnection, late: bool) -> BaseException:
    """Return what *error* means for a run: its time was up, its lock is lost, or just itself.

    What another connection than the run's own says, tells nothing of the run.

    :param lent: the run's connection.
    :param late: the run's deadline has passed.
    """
    said, left = driver_error(error), lent.condition
    if isinstance(error, RunError):
        return error
    if left.given_away and isinstance(error, SQLAlchemyError):
        return _because_of(error, TransactionEnded())
    if said is None and not isinstance(error, PendingRollbackError):
        return error
    own = said in lent.errors or not left.whole
    gone = left.gone or (own and sqlstate(error) in ENDED)
    late = ((gone or own) and _timed_out(error)) or (late and (gone or _canceled(error)))
    if not gone and not late:
        return error
    if late:
        return _because_of(error, JobTimeout())
    by_the_job = not left.broken and sqlstate(error) in BY_THE_JOB
    return _because_of(error, TransactionEnded() if by_the_job else LockLost())


def _because_of(error: BaseException, found: RunError) -> RunError:
    found.__cause__ = error
    return found
