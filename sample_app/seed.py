"""Readers and posts to look at, made by one statement however many there are."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

SEED = text("""
    WITH author AS (
        INSERT INTO users (email, name, digest_enabled, last_digest_at)
        SELECT 'reader' || n || '@example.com', 'Reader ' || n, n <= :subscribers,
               CASE WHEN n % 3 > 0 THEN now() - interval '2 days' END
        FROM generate_series(1, :users) AS n
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    INSERT INTO posts (user_id, title, created_at)
    SELECT id, 'Thought no. ' || serial, now() - random() * interval '2 days'
    FROM author CROSS JOIN generate_series(1, 3) AS serial
""")


def seed(session: Session, subscribers: int, unsubscribed: int = 25) -> None:
    """Add users who want the digest, a few who do not, and posts of all of them.

    A third was never mailed, the others two days ago. Users who are there already stay as they are.
    """
    session.execute(SEED, {"subscribers": subscribers, "users": subscribers + unsubscribed})
