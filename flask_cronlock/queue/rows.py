"""The queue's rows: what Procrastinate's function takes, and where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Text, bindparam, cast, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.types import UserDefinedType

from ..exceptions import RightsMissing, TablesMissing, Unavailable
from ..sqlerrors import driver_error

OF_THE_QUEUE = (
    "those of the queue; where they are there, the search_path of the app's connections leads "
    "elsewhere"
)
MEANINGS: dict[str | None, type[Unavailable]] = {
    "42501": RightsMissing,
    "42704": TablesMissing,  # undefined type
    "42883": TablesMissing,  # undefined function
    "42P01": TablesMissing,  # undefined table
    "42703": TablesMissing,  # undefined column
}


class QueueRow(UserDefinedType[Any]):
    """Procrastinate's type of what its function takes."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "procrastinate_job_to_defer_v1"


def queue_row(queue: Any, task: Any, args: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a row that is due at once; its ``args`` are JSON."""
    return cast(func.row(queue, task, 0, None, None, args, None), QueueRow)


def json_value(name: str) -> ColumnElement[Any]:
    """Return the JSON that is given as text under *name*."""
    return cast(bindparam(name, type_=Text), JSONB)


def text_value(name: str) -> ColumnElement[str]:
    """Return the text that is given under *name*."""
    return bindparam(name, type_=Text)


def defer_rows(row: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the call that defers *row* of each row of a statement; it gives their numbers."""
    # The version in the function's name is Procrastinate's promise to keep it.
    return func.procrastinate_defer_jobs_v1(func.array_agg(row))


@contextmanager
def queue_told() -> Iterator[None]:
    """Say so, with the cure, where what a statement uses of the queue is missing, or forbidden."""
    with missing_told("procrastinate_", OF_THE_QUEUE):
        yield


@contextmanager
def missing_told(name: str, what: str | None = None) -> Iterator[None]:
    """Say so, with the cure, where what is called *name*… is missing, or forbidden.

    By the server's own sentence alone, whatever its language: what it adds shows the statement.
    """
    try:
        yield
    except ProgrammingError as error:
        found = driver_error(error)
        if found is None or name not in (found.diag.message_primary or ""):
            raise
        if (kind := MEANINGS.get(found.sqlstate)) is None:
            raise
        raise kind(what if kind is TablesMissing else None) from error
