"""Values and errors as short, safe text: for the tables, the answers and the log."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable

LONGEST_VALUE = 500
LONGEST_ERROR = 1000


def value_text(value: object) -> str:
    """Return *value* as JSON of at most :data:`LONGEST_VALUE` characters.

    What JSON has no form for, or what is too long, becomes the start of its ``repr`` as a string;
    the run was a success whatever its job returned.
    """
    try:
        exact = json.dumps(value, allow_nan=False)
    except Exception:
        exact = ""
    if exact and len(exact) <= LONGEST_VALUE:
        return exact
    return json.dumps(_shortened(_repr(value), LONGEST_VALUE // 6))


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def error_text(error: BaseException, secrets: Iterable[bytes] = ()) -> str:
    """Return class and first line of *error*, without secrets and without what no table takes."""
    try:
        first_line = str(error).partition("\n")[0]
    except Exception:
        first_line = "(its text could not be had)"
    text = redacted(f"{type(error).__qualname__}: {first_line}", secrets)
    printable = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return _shortened(printable, LONGEST_ERROR)


def traceback_text(error: BaseException, secrets: Iterable[bytes]) -> str:
    """Return the traceback of *error* as it may stand in a log."""
    return redacted("".join(traceback.format_exception(error)), secrets)


def redacted(text: str, secrets: Iterable[bytes]) -> str:
    """Return *text* with every configured secret blotted out."""
    for secret in secrets:
        for form in {secret.decode("utf-8", "replace"), secret.decode("latin-1")}:
            text = text.replace(form, "[secret]")
    return text
