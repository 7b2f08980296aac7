"""The ledger's rows of a job of few and far slots, counted back from the newest one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from .databases import Database

EVERY = timedelta(days=100)
"""An interval whose slots no test run can straddle, and of which there are hundreds since 1970."""


def slot_at(database: Database, number: int) -> datetime:
    """Return the slot that is so many before the newest by the database's clock."""
    asked = "SELECT floor(extract(epoch FROM now()) / %s)::bigint"
    newest = int(database.value(asked, EVERY.total_seconds()))
    return datetime.fromtimestamp(0, UTC) + (newest - number) * EVERY


def put(
    database: Database, numbers: list[int], state: str = "done", job: str = "digest", **more: Any
) -> None:
    """Write runs of the past."""
    for number in numbers:
        slot = slot_at(database, number)
        row = {
            "id": uuid4(),
            "namespace": "",
            "job": job,
            "slot_key": f"{slot:%Y-%m-%dT%H:%M}Z",
            "scheduled_at": slot,
            "state": state,
            "trigger": "http",
            "forced": False,
            "instance": "the past",
            "app": "world",
            "started_at": slot,
            **more,
        }
        columns, values = ", ".join(row), ", ".join(["%s"] * len(row))
        database.query(f"INSERT INTO cronlock_run ({columns}) VALUES ({values})", *row.values())


def know(database: Database, job: str = "digest", **columns: Any) -> None:
    """Write what is known of a job."""
    names, values = ", ".join(columns), ", ".join(["%s"] * len(columns))
    database.query(
        f"INSERT INTO cronlock_job (namespace, job, {names}) VALUES ('', %s, {values})",
        job,
        *columns.values(),
    )


def states(database: Database, job: str = "digest") -> dict[int, str]:
    """Return the state of each slot that has a row, the newest first."""
    newest = slot_at(database, 0)
    rows = database.query(
        "SELECT scheduled_at, state FROM cronlock_run WHERE job = %s AND slot_key IS NOT NULL"
        " ORDER BY scheduled_at DESC",
        job,
    )
    return {(newest - at) // EVERY: state for at, state in rows}
