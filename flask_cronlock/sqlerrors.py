"""What a database error means; told by SQLSTATE and the connection's state, never by its text."""

from __future__ import annotations

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from .exceptions import DatabaseUnreachable, NoFreeConnection, TablesMissing, Unavailable

LOCK_NOT_AVAILABLE = "55P03"
OUT_OF_TIME = {
    "57014",  # statement_timeout, or a cancel
}
ENDED = {
    "25P01",  # no transaction is open
    "25P02",  # the transaction is aborted
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "57P01",  # terminated by an administrator, or by a contender
    "57P02",  # crash of the server
    "08P01",  # a pooler's limit
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
    while error is not None:
        if isinstance(error, psycopg.Error):
            return error
        error = error.orig if isinstance(error, DBAPIError) else error.__cause__
    return None


def sqlstate(error: BaseException) -> str | None:
    found = driver_error(error)
    return found.sqlstate if found else None


def broke_connection(error: BaseException) -> bool:
    """Tell whether SQLAlchemy dropped the connection because of *error*."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def as_unavailable(error: BaseException) -> Unavailable | None:
    """Return why no run is possible now, or ``None`` when *error* says something else."""
    if isinstance(error, PoolTimeout):
        return NoFreeConnection()
    found = driver_error(error)
    if found is None:
        return None
    if found.sqlstate in MISSING_TABLES:
        return TablesMissing()
    if found.sqlstate is None:
        return DatabaseUnreachable() if isinstance(found, psycopg.OperationalError) else None
    unreachable = found.sqlstate[:2] in UNREACHABLE_CLASSES
    return DatabaseUnreachable() if unreachable else None
