"""The sample app's digest in a real run, against one statement of pure SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from flask_cronlock import Ran
from sample_app.digest import ZONE
from sample_app.extensions import cron, db

from .app import HOUR, create_app
from .in_process import OURS
from .rounds import Case, Timing
from .server import Database

PURE_SQL = "one SQL statement"
READERS = """
INSERT INTO users (email, name) SELECT 'reader' || n || '@example.com', 'Reader ' || n
FROM generate_series(1, %(users)s) AS n
"""
POSTS = """
INSERT INTO posts (user_id, title, created_at)
SELECT id, 'Thought', CAST('2020-01-01' AS date) + id % 500 * interval '1 day' FROM users
"""
DIGEST = """
WITH new AS (
  SELECT count(*) AS posts FROM posts
  WHERE created_at > %(slot)s - interval '1 day' AND created_at <= %(slot)s
), due AS (
  UPDATE users SET last_digest_at = %(slot)s
  WHERE digest_enabled AND (last_digest_at IS NULL OR last_digest_at < %(slot)s)
  RETURNING id, name
)
INSERT INTO outbox (user_id, slot, subject, post_count)
SELECT due.id, %(slot)s, 'Good morning, ' || due.name || ': ' || new.posts || ' new posts',
       new.posts
FROM due CROSS JOIN new
"""


def time(database: Database, users: int, rounds: int) -> Timing:
    """Write *users* digests in each way, *rounds* times; every time for another slot."""
    app = create_app(database.url)
    with app.app_context(), database.connect() as bare:
        db.create_all()
        bare.execute(READERS, {"users": users})
        bare.execute(POSTS)
        bare.commit()
        slot = slots()
        with database.connect(autocommit=True) as cleaner:

            def ours() -> None:
                outcome = cron.run("digest", slot=next(slot))
                if not (isinstance(outcome, Ran) and outcome.value == users):
                    raise RuntimeError(f"not {users} digests, but {outcome}")

            def pure() -> None:
                written = bare.execute(DIGEST, {"slot": next(slot)}).rowcount
                bare.commit()
                if written != users:
                    raise RuntimeError(f"not {users} digests, but {written}")

            clean(cleaner)
            case = Case(f"digest of {users:,} users", {OURS: ours, PURE_SQL: pure})
            timing = case.time(rounds, batch=1, after=lambda: clean(cleaner))
        db.session.remove()
        db.engine.dispose()
    return timing


def slots() -> Iterator[datetime]:
    """Yield the slots from 2020 on: users are due again with each, and nothing is to be undone."""
    for day in count():
        local = datetime(2020, 1, 2, HOUR, tzinfo=ZoneInfo(ZONE)) + timedelta(days=day)
        yield local.astimezone(UTC)


def clean(connection: psycopg.Connection[Any]) -> None:
    """Leave to each way the same tables and the same work on the WAL."""
    for statement in ("TRUNCATE outbox", "VACUUM ANALYZE users", "CHECKPOINT"):
        connection.execute(statement)
