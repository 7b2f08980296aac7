"""The names of locks, and the text that their keys are hashed from.

A key is ``hashtextextended(text, 0)``, computed by the server: a signed 64-bit number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text

from .exceptions import LockNameError
from .jobs import JOB_NAME

LockName = str | tuple[str | int | UUID, ...]

TRY = text("""
WITH asked AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtextextended(CAST(:key AS text), 0)) AS locked
)
SELECT locked, CASE WHEN locked THEN set_config('lock_timeout', :lock_timeout, true) END FROM asked
""")
WAIT = text("SELECT pg_advisory_xact_lock(hashtextextended(CAST(:key AS text), 0))")


def lock_text(namespace: str, name: LockName) -> str:
    """Return the text that is hashed: the name alone, or ``namespace:name``.

    A tuple becomes a JSON array, so that ``("a", 1)`` and ``("a", "1")`` are two locks, and no
    part can run into the next.

    :raises LockNameError: for a part whose text would differ from process to process.
    """
    if isinstance(name, str) and JOB_NAME.fullmatch(name):
        plain = name
    elif isinstance(name, tuple) and len(name) > 1:
        plain = json.dumps([_part(part) for part in name], separators=(",", ":"))
        if not isinstance(name[0], str) or not JOB_NAME.fullmatch(name[0]):
            raise LockNameError(repr(name)[:80])
    else:
        raise LockNameError(repr(name)[:80])
    return f"{namespace}:{plain}" if namespace else plain


def lock_texts(namespace: str, names: Sequence[str]) -> list[str]:
    """Return the texts of a job's locks, one for each name that it has or had."""
    return [lock_text(namespace, name) for name in names]


def _part(part: object) -> str | int:
    if isinstance(part, UUID):
        return str(part)
    if isinstance(part, (str, int)) and not isinstance(part, bool):
        return part
    raise LockNameError(f"{type(part).__name__} is no part of a name")
