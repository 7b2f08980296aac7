"""Who holds an advisory lock, and how one is ended that outlived every limit."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError

from .jobs import Job
from .locks import lock_text
from .texts import error_text
from .transaction import GuardedTransaction

logger = logging.getLogger("flask_cronlock")

OVERDUE_AFTER = timedelta(seconds=1)
"""A holder this far past its deadline has escaped every limit of the server's."""

# pg_locks shows a 64-bit key as two unsigned halves, with objsubid 1. Here are the functions under
# that view and pg_stat_activity: to plan the views takes the server longer than all else in a run.
# A prepared transaction's lock has no pid, and for NULL the function returns every backend.
_HOLDERS = """
SELECT l.pid, coalesce(a.application_name, '') AS application_name, a.state,
       a.xact_start AS since, clock_timestamp() AS seen_at,
       (l.classid::bigint << 32) | l.objid::bigint AS key
FROM pg_lock_status() AS l
LEFT JOIN LATERAL pg_stat_get_activity(l.pid) AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
HOLDER_OF_KEY = text(f"""
SELECT h.*, NULL AS name FROM ({_HOLDERS}) AS h
WHERE h.key = hashtextextended(CAST(:key AS text), 0) AND h.pid IS DISTINCT FROM pg_backend_pid()
""")
ALL_HOLDERS = text(f"""
SELECT h.*, known.name
FROM ({_HOLDERS}) AS h
LEFT JOIN unnest(CAST(:names AS text[]), CAST(:texts AS text[])) AS known(name, key_text)
  ON h.key = hashtextextended(known.key_text, 0)
ORDER BY h.since, h.pid
""")
END_HOLDER = text(f"""
SELECT pg_terminate_backend(h.pid) FROM ({_HOLDERS}) AS h
WHERE h.key = :key AND h.pid = :pid AND h.application_name = :application_name
""")
_OURS = re.compile(r"cronlock (\d+)\+(\d+) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Holder:
    """A backend that holds an advisory lock."""

    pid: int | None
    """Of the PostgreSQL backend; ``None`` for a prepared transaction, which has none."""
    application_name: str
    who: str
    """The instance and its pid; for a foreign holder what it calls itself, and its backend."""
    state: str | None
    """``None`` where the viewing role may not see it."""
    since: datetime | None
    deadline: datetime | None
    """``None`` for a holder that is not one of our runs."""
    seen_at: datetime
    key: int
    name: str | None
    """The registered job whose key it is."""

    @property
    def ours(self) -> bool:
        """Tell whether it is one of our runs."""
        return self.deadline is not None

    @property
    def overdue(self) -> bool:
        """Tell whether it should have been ended by the server before now."""
        return self.deadline is not None and self.seen_at > self.deadline + OVERDUE_AFTER


def _holder_of(row: Row[Any]) -> Holder:
    """Return the holder in *row*.

    Start and deadline of a run are in its ``application_name``, which every role may read.
    """
    name = row.application_name
    who, since, deadline = f"{name or '?'} (backend {row.pid})", row.since, None
    if row.pid is None:
        who = "a prepared transaction (see pg_prepared_xacts)"
    if found := _OURS.fullmatch(name):
        who, since = found[3], datetime.fromtimestamp(int(found[1]) / 1000, UTC)
        deadline = since + timedelta(milliseconds=int(found[2]))
    # In UTC: a difference of two times of one zone leaves out the hour that its clock repeats.
    seen_at = row.seen_at.astimezone(UTC)
    return Holder(row.pid, name, who, row.state, since, deadline, seen_at, row.key, row.name)


def find_holder(tx: GuardedTransaction, key_text: str) -> Holder | None:
    """Return who else holds the lock; ``None`` when it was freed in the meantime.

    A run that did not get all of its job's locks holds some of them itself. A statement of its
    own: planning it costs the server much, and only the loser asks.
    """
    row = tx.execute(HOLDER_OF_KEY, {"key": key_text}).first()
    return _holder_of(row) if row else None


def all_holders(tx: GuardedTransaction, namespace: str, jobs: Iterable[Job]) -> list[Holder]:
    """Return every holder of a 64-bit advisory key in this database, named by *jobs*."""
    known = [(job.name, lock_text(namespace, name)) for job in jobs for name in job.names]
    names, texts = [name for name, _ in known], [key_text for _, key_text in known]
    rows = tx.execute(ALL_HOLDERS, {"names": names, "texts": texts})
    return [_holder_of(row) for row in rows]


def end_if_overdue(tx: GuardedTransaction, name: str, holder: Holder | None) -> None:
    """End a holder that no limit of the server's could end: one frozen in mid-message.

    Where the server refuses, that is logged, and the transaction stays usable.
    """
    if holder is None or not holder.overdue:
        return
    extra = {"action": "overdue_holder_ended", "job": name, "holder": holder.who}
    about = {"key": holder.key, "pid": holder.pid, "application_name": holder.application_name}
    try:
        with tx.connection.begin_nested():
            ended = tx.execute(END_HOLDER, about).scalar()
    except DBAPIError as error:
        logger.error(
            "%s: %s holds the lock past its deadline, and could not be ended: %s",
            name,
            holder.who,
            error_text(error.orig or error),
            extra={**extra, "action": "overdue_holder_kept"},
        )
        return
    if ended:
        logger.warning(
            "%s: %s held the lock past its deadline (%s), so its backend %s was ended.",
            name,
            holder.who,
            holder.deadline,
            holder.pid,
            extra=extra,
        )
