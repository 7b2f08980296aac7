"""What the commands read from the terminal and print to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

import click
from sqlalchemy.exc import SQLAlchemyError

from ..exceptions import CronLockError, ItemError, RefusedRun, UnknownTask
from ..sqlerrors import driver_error
from ..telling import known_words
from ..texts import error_text

LAST_YEAR = 9000
WRONG_WISHES = (RefusedRun, ItemError, UnknownTask)


class Instant(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A moment in RFC 3339, with its offset."""

    name = "instant"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no moment; write it as 2026-10-25T07:00:00+01:00.")
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no offset; add Z for UTC, or one such as +01:00.")
        if moment.year > LAST_YEAR:
            self.fail(f"{value!r} is too far ahead; slots are reckoned to the year {LAST_YEAR}.")
        return moment


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* under *heads*, each column as wide as its widest cell."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def stop(words: str, code: int) -> NoReturn:
    """End the command with one line and an exit status."""
    click.echo(f"Error: {words}", err=True)
    raise SystemExit(code)


@contextmanager
def errors_told(secrets: Iterable[bytes]) -> Iterator[None]:
    """End the command with one line for an error: status 2 for a wrong wish, else 1."""
    try:
        yield
    except (CronLockError, SQLAlchemyError) as error:
        stop(_words(error, secrets), 2 if isinstance(error, WRONG_WISHES) else 1)


def _words(error: Exception, secrets: Iterable[bytes]) -> str:
    """Return what *error* says, and what the database said."""
    return known_words(error, secrets) or error_text(driver_error(error) or error, secrets)
