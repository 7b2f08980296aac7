"""The same by hand: lock, look, claim, commit; no limits, no proof, no records, no reports."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, LiteralString
from zoneinfo import ZoneInfo

import psycopg
from sqlalchemy import text
from sqlalchemy.orm import Session

from sample_app.digest import ZONE

TABLE = """
CREATE TABLE by_hand (job text, slot timestamptz, finished_at timestamptz, PRIMARY KEY (job, slot))
"""
TRY = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:job, 0))")
LOOK = text("SELECT finished_at FROM by_hand WHERE job = :job AND slot = :slot")
CLAIM = text(
    "INSERT INTO by_hand VALUES (:job, :slot, clock_timestamp())"
    " ON CONFLICT DO NOTHING RETURNING finished_at"
)
TRY_BARE = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(job)s, 0))"
LOOK_BARE = "SELECT finished_at FROM by_hand WHERE job = %(job)s AND slot = %(slot)s"
CLAIM_BARE = (
    "INSERT INTO by_hand VALUES (%(job)s, %(slot)s, clock_timestamp())"
    " ON CONFLICT DO NOTHING RETURNING finished_at"
)


def newest_slot(hour: int) -> datetime:
    """Return the newest full *hour* of the day, by this host's clock."""
    now = datetime.now(ZoneInfo(ZONE))
    today = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)


def run(session: Session, job: str, slot: datetime) -> str:
    """Run an empty job with Flask-SQLAlchemy."""
    values = {"job": job, "slot": slot}
    outcome = "ran"
    if not session.scalar(TRY, values):
        outcome = "already running"
    elif session.scalar(LOOK, values) or not session.scalar(CLAIM, values):
        outcome = "already ran"
    session.commit()
    return outcome


def with_lock(session: Session, name: str) -> str:
    """Do nothing under a lock with Flask-SQLAlchemy."""
    locked = session.scalar(TRY, {"job": name})
    session.commit()
    return "ran" if locked else "already running"


def run_bare(connection: psycopg.Connection[Any], job: str, slot: datetime) -> str:
    """Run an empty job with nothing but the driver."""
    values = {"job": job, "slot": slot}
    outcome = "ran"
    if not scalar(connection, TRY_BARE, values):
        outcome = "already running"
    elif scalar(connection, LOOK_BARE, values) or not scalar(connection, CLAIM_BARE, values):
        outcome = "already ran"
    connection.commit()
    return outcome


def with_lock_bare(connection: psycopg.Connection[Any], name: str) -> str:
    """Do nothing under a lock with nothing but the driver."""
    locked = scalar(connection, TRY_BARE, {"job": name})
    connection.commit()
    return "ran" if locked else "already running"


def scalar(
    connection: psycopg.Connection[Any], statement: LiteralString, values: dict[str, Any]
) -> Any:
    row = connection.execute(statement, values).fetchone()
    return row[0] if row else None
