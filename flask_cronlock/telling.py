"""An error in words, for the log and the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from .exceptions import CronLockError
from .sqlerrors import as_unavailable, driver_error
from .texts import error_text, loggable


def known_words(error: BaseException, secrets: Iterable[bytes]) -> str | None:
    """Return one line with the cure, and what the database said; ``None`` for what nobody knows."""
    known = error if isinstance(error, CronLockError) else as_unavailable(error)
    if known is None:
        return None
    said = driver_error(error)
    more = f" ({error_text(said, secrets)})" if said else ""
    return error_text(known, secrets) + more


def log_words(error: BaseException, secrets: Iterable[bytes]) -> tuple[str, BaseException | None]:
    """Return the words for *error*, and itself for ``exc_info`` where its traceback is of use."""
    if (words := known_words(error, secrets)) is not None:
        return words, None
    shown, trace = loggable(error, secrets)
    return error_text(error, secrets) + trace, shown
