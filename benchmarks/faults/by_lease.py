"""A lease: one row for each lock, which is taken for a time; the work has its own transaction.

As ShedLock documents it for a relational database, with the database's clock and no minimum.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

from .body import Body
from .hit import LIMIT, Hit, Place

TABLE = "CREATE TABLE lease (job text PRIMARY KEY, taken_until timestamptz, taken_by text)"
TAKE = text("""
INSERT INTO lease VALUES (:job, clock_timestamp() + make_interval(secs => :limit), :who)
ON CONFLICT (job) DO UPDATE SET taken_until = excluded.taken_until, taken_by = excluded.taken_by
WHERE lease.taken_until <= clock_timestamp()
RETURNING job
""")
GIVE_BACK = text("""
UPDATE lease SET taken_until = clock_timestamp() WHERE job = :job AND taken_by = :who
""")


class ByLease:
    def __init__(self, place: Place, body: Body) -> None:
        self.engine, self.body = place.engine(), body
        self.who = place.who

    def fire(self, hit: Hit) -> str:
        about = {"job": hit.job, "who": self.who}
        with self.engine.begin() as connection:
            if not connection.scalar(TAKE, {**about, "limit": LIMIT}):
                return "already running"
        try:
            with Session(self.engine) as session, session.begin():
                self.body(session, hit)
        finally:
            with self.engine.begin() as connection:
                connection.execute(GIVE_BACK, about)
        return "ran"
