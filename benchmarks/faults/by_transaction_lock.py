"""A transaction-level advisory lock in the job's own transaction, and nothing else."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

from .body import Body
from .hit import Hit, Place

TRY = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:job, 0))")


class ByTransactionLock:
    def __init__(self, place: Place, body: Body) -> None:
        self.engine, self.body = place.engine(), body

    def fire(self, hit: Hit) -> str:
        with Session(self.engine) as session, session.begin():
            if not session.scalar(TRY, {"job": hit.job}):
                return "already running"
            self.body(session, hit)
        return "ran"
