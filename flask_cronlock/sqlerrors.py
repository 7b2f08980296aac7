"""What a database error means; told by SQLSTATE and the connection's state, not by its text, but
for PgBouncer's: it has one code for all, and one language."""

from __future__ import annotations

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from .exceptions import (
    DatabaseUnreachable,
    JobTimeout,
    LockLost,
    NoFreeConnection,
    RightsMissing,
    RunError,
    StatementPooling,
    TablesMissing,
    Unavailable,
)

LOCK_NOT_AVAILABLE = "55P03"
CANCELED = "57014"
NO_RIGHTS = "42501"
POOLER = "08P01"
NO_TRANSACTIONS = "statement pooling"
"""What PgBouncer says of BEGIN where its pool_mode is statement."""
TIMED_OUT = {
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
}
ENDED = {
    "25P01",  # no transaction is open
    "3B001",  # a savepoint is gone, and so is the transaction that it was in
    "25P02",  # the transaction is aborted
    "57P01",  # terminated by an administrator, or by a contender
    "57P02",  # crash of the server
    POOLER,  # its limit
}
MISSING_TABLES = {
    "42P01",  # undefined table
    "42703",  # undefined column
    "3F000",  # undefined schema
}
UNREACHABLE_CLASSES = {
    "08",  # the connection failed
    "28",  # the role was not let in
    "3D",  # no such database
    "53",  # out of connections, memory or disk
    "55",  # a table is locked, by a migration for example
    "57",  # shut down, or cancelled by an operator
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


def broke_connection(error: BaseException) -> bool:
    """Tell whether SQLAlchemy dropped the connection because of *error*."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _ended(error: BaseException) -> bool:
    """Tell whether *error* says that the transaction it came from is over."""
    return broke_connection(error) or sqlstate(error) in ENDED


def _timed_out(error: BaseException) -> bool:
    """Tell whether the server ended the transaction for its length, or for being idle."""
    return sqlstate(error) in TIMED_OUT


def _canceled(error: BaseException) -> bool:
    """Tell whether the statement was cancelled: by ``statement_timeout``, or by an operator."""
    return sqlstate(error) == CANCELED


def as_unavailable(error: BaseException) -> Unavailable | None:
    """Return why no run is possible now, or ``None`` when *error* says something else."""
    if isinstance(error, PoolTimeout):
        return NoFreeConnection()
    found = driver_error(error)
    if found is None:
        return None
    if found.sqlstate in MISSING_TABLES:
        return TablesMissing()
    if found.sqlstate == NO_RIGHTS:
        return RightsMissing()
    if found.sqlstate == POOLER and NO_TRANSACTIONS in str(found):
        return StatementPooling()
    if found.sqlstate is None:
        return DatabaseUnreachable() if isinstance(found, psycopg.OperationalError) else None
    unreachable = found.sqlstate[:2] in UNREACHABLE_CLASSES or _timed_out(found)
    return DatabaseUnreachable() if unreachable else None


def meaning(error: BaseException, closed: bool, late: bool) -> BaseException:
    """Return what *error* means for a run: its time was up, its lock is lost, or just itself.

    :param closed: the run's connection is gone.
    :param late: the run's deadline has passed.
    """
    if isinstance(error, RunError) or driver_error(error) is None:
        return error
    gone = closed or _ended(error)
    late = _timed_out(error) or (late and (gone or _canceled(error)))
    if not gone and not late:
        return error
    found = JobTimeout() if late else LockLost()
    found.__cause__ = error
    return found
