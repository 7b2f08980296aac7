"""A task's arguments, as JSON that gives back what was given."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from ..exceptions import ArgumentError, DeferError
from ..texts import shown
from .registration import ITEM
from .task import Task

NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")
"""In JSON, where backslashes come in pairs."""


def checked(task: Task, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *arguments* if *task* can be called with them, from JSON.

    :raises DeferError: naming the argument and the cure.
    """
    try:
        task.signature.bind(**arguments)
    except TypeError as error:
        takes, given = task.signature, ", ".join(arguments)
        words = f"task {task.name!r}: {error}; it takes {takes}, and was given ({given})"
        raise DeferError(words) from None
    refuse_item(task, arguments)
    if not _survives(arguments):
        name = next((name for name in arguments if not _survives(arguments[name])), "")
        raise ArgumentError(f"task {task.name!r}, {name}={shown(arguments.get(name))}")
    return arguments


def refuse_item(task: Task, names: Collection[str]) -> None:
    """Raise :exc:`DeferError` where an argument has the name of the item."""
    if task.takes_item and ITEM in names:
        raise DeferError(f"task {task.name!r}: {ITEM!r} is the item itself; choose another name")


def _survives(value: Any) -> bool:
    """Tell whether JSON, and PostgreSQL's of it, gives *value* back as it is.

    Not so a tuple, which comes back as a list, a key that is no text, or what is no value at all.
    """
    try:
        text = json.dumps(value, allow_nan=False)
        return bool(json.loads(text) == value) and not NUL.search(text) and _is_text(value)
    except (TypeError, ValueError, RecursionError):
        return False


def _is_text(value: Any) -> bool:
    """Tell whether all text in *value* can be stored: half a surrogate pair cannot."""
    json.dumps(value, ensure_ascii=False).encode()
    return True
