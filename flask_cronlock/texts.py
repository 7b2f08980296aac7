"""Values and errors as short, safe text: for the tables, the answers and the log."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable

LONGEST_VALUE = 500
LONGEST_ERROR = 1000
LONGEST_ARGUMENT = 80


def value_text(value: object, secrets: Iterable[bytes] = ()) -> str:
    """Return *value* as ASCII JSON of at most :data:`LONGEST_VALUE` characters.

    What JSON has no form for, what is too long or holds a secret becomes the start of its ``repr``
    as a string; the run was a success whatever its job returned.
    """
    try:
        exact = json.dumps(value, allow_nan=False)
    except Exception:
        exact = ""
    if exact and len(exact) <= LONGEST_VALUE and redacted(exact, secrets) == exact:
        return exact
    text = redacted(_repr(value), secrets)
    longest = LONGEST_VALUE
    while len(shortened := json.dumps(_shortened(text, longest))) > LONGEST_VALUE:
        longest -= 1 + longest // 8
    return shortened


def shown(argument: object) -> str:
    """Return the start of the ``repr`` of what a caller gave, for the error that refuses it."""
    return _repr(argument)[:LONGEST_ARGUMENT]


def _repr(value: object) -> str:
    kind = _told(lambda: type(value).__name__, "object")
    return _told(lambda: repr(value), f"<{kind}>")


def _told(tell: Callable[[], str], otherwise: str) -> str:
    """Return what an object says of itself, as a plain string, which no subclass has a say in."""
    try:
        return str.__str__(tell())
    except Exception:
        return otherwise


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def error_text(error: BaseException, secrets: Iterable[bytes] = ()) -> str:
    """Return class and first line of *error*, without secrets and without what no table takes."""
    kind = _told(lambda: type(error).__qualname__, "Error")
    first_line = _told(lambda: str(error), "(its text could not be had)").partition("\n")[0]
    text = redacted(f"{kind}: {first_line}", secrets)
    printable = "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text[:LONGEST_ERROR]
    )
    return _shortened(printable + text[LONGEST_ERROR:], LONGEST_ERROR)


def loggable(error: BaseException, secrets: Iterable[bytes]) -> tuple[BaseException | None, str]:
    """Return *error* for a log's ``exc_info``, and what to append to the message.

    One whose traceback holds a secret must not get there: its redacted traceback is appended. So is
    where it came from, of one that makes a traceback fail.
    """
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception:
        frames = "".join(traceback.format_tb(error.__traceback__))
        return None, f"\n{redacted(frames, secrets).rstrip()}"
    safe = redacted(trace, secrets)
    return (error, "") if safe == trace else (None, f"\n{safe.rstrip()}")


def redacted(text: str, secrets: Iterable[bytes]) -> str:
    """Return *text* with every configured secret blotted out, also where ``repr`` or JSON has
    escaped it."""
    for secret in sorted(secrets, key=len, reverse=True):
        for plain in (secret.decode("utf-8", "replace"), secret.decode("latin-1")):
            for form in (plain, repr(plain)[1:-1], ascii(plain)[1:-1], json.dumps(plain)[1:-1]):
                text = text.replace(form, "[secret]")
    return text
