"""Advisory lock keys, and who holds them.

A key is ``hashtextextended(text, 0)``, computed by the server: a signed 64-bit number. ``pg_locks``
shows it as two unsigned halves, with ``objsubid`` 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from .exceptions import LockNameError
from .jobs import JOB_NAME
from .transaction import GuardedTransaction

LockName = str | tuple[str | int | UUID, ...]

OVERDUE_AFTER = timedelta(seconds=1)
"""A holder this far past its deadline has escaped every limit of the server's."""

# The functions under pg_locks and pg_stat_activity: to plan the views takes the server longer than
# all else in a run. The join compares the pids, since a prepared transaction's lock has none, and
# for NULL the function returns every backend.
_HOLDERS = """
SELECT l.pid AS holder_pid, a.application_name AS holder_name, a.state AS holder_state,
       a.xact_start AS holder_since, clock_timestamp() AS seen_at,
       (l.classid::bigint << 32) | l.objid::bigint AS key
FROM pg_lock_status() AS l
LEFT JOIN LATERAL pg_stat_get_activity(l.pid) AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_HOLDER_OF_KEY = f"""
SELECT * FROM ({_HOLDERS}) AS h WHERE h.key = hashtextextended(CAST(:key AS text), 0)
"""
HOLDER_OF_KEY = text(_HOLDER_OF_KEY)
TRY = text("""
WITH asked AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtextextended(CAST(:key AS text), 0)) AS locked
)
SELECT locked, CASE WHEN locked THEN set_config('lock_timeout', :lock_timeout, true) END FROM asked
""")
RESET_LOCK_TIMEOUT = text("SELECT set_config('lock_timeout', :lock_timeout, true)")
WAIT = text("SELECT pg_advisory_xact_lock(hashtextextended(CAST(:key AS text), 0))")
PROOF = text("""
SELECT pg_backend_pid() AS pid, now() AS began,
       CAST(pg_current_xact_id_if_assigned() AS text) AS xid
""")
ALL_HOLDERS = text(f"""
SELECT h.*, known.name
FROM ({_HOLDERS}) AS h
LEFT JOIN unnest(CAST(:names AS text[]), CAST(:texts AS text[])) AS known(name, key_text)
  ON h.key = hashtextextended(known.key_text, 0)
ORDER BY h.holder_since, h.holder_pid
""")
END_HOLDER = text(f"""
SELECT pg_terminate_backend(h.holder_pid)
FROM ({_HOLDER_OF_KEY}) AS h WHERE h.holder_pid = :pid AND h.holder_name = :name
""")
_OURS = re.compile(r"cronlock (\d+)\+(\d+) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Holder:
    """A backend that holds an advisory lock."""

    pid: int
    """Of the PostgreSQL backend."""
    application_name: str
    state: str | None
    """``None`` where the viewing role may not see it."""
    since: datetime | None
    deadline: datetime | None
    """``None`` for a holder that is not one of our runs."""
    seen_at: datetime
    key: int
    name: str | None = None
    """The registered job whose key it is."""

    @property
    def ours(self) -> bool:
        return self.deadline is not None

    @property
    def who(self) -> str:
        """The instance and its pid; for a foreign holder what it calls itself, and its backend."""
        found = _OURS.fullmatch(self.application_name)
        return found[3] if found else f"{self.application_name or '?'} (backend {self.pid})"

    @property
    def overdue(self) -> bool:
        return self.deadline is not None and self.seen_at > self.deadline + OVERDUE_AFTER


def holder_of(row: Row[Any]) -> Holder | None:
    """Return the holder that *row* speaks of, if it does.

    Start and deadline of a run are in its ``application_name``, which every role may read.
    """
    if row.holder_pid is None:
        return None
    since, deadline = row.holder_since, None
    if found := _OURS.fullmatch(row.holder_name or ""):
        since = datetime.fromtimestamp(int(found[1]) / 1000, UTC)
        deadline = since + timedelta(milliseconds=int(found[2]))
    return Holder(
        pid=row.holder_pid,
        application_name=row.holder_name or "",
        state=row.holder_state,
        since=since,
        deadline=deadline,
        seen_at=row.seen_at,
        key=row.key,
        name=getattr(row, "name", None),
    )


def find_holder(tx: GuardedTransaction, key_text: str) -> Holder | None:
    """Return who holds the lock; ``None`` when it was freed in the meantime.

    A statement of its own: to plan it takes the server longer than all else in a run, and only the
    loser asks.
    """
    row = tx.execute(HOLDER_OF_KEY, {"key": key_text}).first()
    return holder_of(row) if row else None


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


def _part(part: object) -> str | int:
    if isinstance(part, UUID):
        return str(part)
    if isinstance(part, (str, int)) and not isinstance(part, bool):
        return part
    raise LockNameError(f"{type(part).__name__} is no part of a name")


def end_holder(tx: GuardedTransaction, holder: Holder, key_text: str) -> bool:
    """End *holder*'s backend, if it still is that holder; return whether the server did.

    A refusal raises, and leaves the transaction usable.
    """
    about = {"key": key_text, "pid": holder.pid, "name": holder.application_name}
    with tx.connection.begin_nested():
        return bool(tx.execute(END_HOLDER, about).scalar())


def all_holders(tx: GuardedTransaction, namespace: str, job_names: Sequence[str]) -> list[Holder]:
    """Return every holder of a 64-bit advisory key in this database."""
    texts = [lock_text(namespace, name) for name in job_names]
    rows = tx.execute(ALL_HOLDERS, {"names": list(job_names), "texts": texts})
    return [holder for row in rows if (holder := holder_of(row)) is not None]
