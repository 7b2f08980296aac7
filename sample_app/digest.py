"""The job: one digest for each subscriber, every morning or as `DIGEST_EVERY` says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Insert, Select, func, insert, literal, or_, select, update
from sqlalchemy.orm import Session

from flask_cronlock import Run

from .config import digest_every
from .extensions import cron
from .mail import send_digest
from .models import Outbox, Post, User

ZONE = "Europe/Berlin"
USERS_PER_STATEMENT = 5_000
MAILS_PER_TASK = 20


def times(every: str | None) -> dict[str, Any]:
    """Return when the digest is due: in the morning, or `every` so often.

    Of mornings that were missed only the last one is made up for; of an interval, set to see that
    no slot is lost, all.
    """
    if every:
        return {"every": every, "catch_up": "all"}
    return {"schedule": "0 7 * * *", "tz": ZONE}


@cron.job("daily-digest", timeout="60s", **times(digest_every()))
def daily_digest(run: Run) -> int:
    """Write one digest for each subscriber who has none for this slot, and defer its mail.

    Both are there when the run commits, and neither before; return how many.
    """
    assert run.slot, "a job with a schedule always has a slot"
    return sum(
        run.defer_from(
            send_digest, digests.returning(Outbox.id.label("digest_id")), batch=MAILS_PER_TASK
        )
        for digests in ranges(run.session, run.slot, USERS_PER_STATEMENT)
    )


def write_digests(session: Session, slot: datetime, size: int = USERS_PER_STATEMENT) -> int:
    """Write the digests of `slot` in ranges of at most `size` users, and no mails; return how many.

    The session's owner commits.
    """
    connection = session.connection()
    return sum(connection.execute(digests).rowcount for digests in ranges(session, slot, size))


def ranges(session: Session, slot: datetime, size: int) -> Iterator[Insert]:
    """Yield the statements that write the digests of `slot`, each for `size` users at most.

    Nothing is fetched but the ranges' bounds.
    """
    connection = session.connection()
    posts = connection.scalar(count_posts(slot - timedelta(days=1), slot)) or 0
    last = 0
    while bound := connection.scalar(end_of_range(last, size)):
        yield digest_range(slot, posts, last, bound)
        last = bound


def count_posts(since: datetime, until: datetime) -> Select[Any]:
    """Count the posts written after `since`, up to and including `until`."""
    return select(func.count()).where(Post.created_at > since, Post.created_at <= until)


def end_of_range(last: int, size: int) -> Select[Any]:
    """Select the `size`-th user id after `last`, or the highest there is; NULL at the end."""
    ids = select(User.id).where(User.id > last).order_by(User.id).limit(size).subquery()
    return select(func.max(ids.c.id))


def digest_range(slot: datetime, posts: int, last: int, bound: int) -> Insert:
    """Stamp the users in `(last, bound]` who are due and write their digests, in one statement.

    Both bounds are plain values: with a subquery or a LIMIT in their place the planner reads the
    whole table for every range.
    """
    due = (
        update(User)
        .where(
            User.id > last,
            User.id <= bound,
            User.digest_enabled,
            or_(User.last_digest_at.is_(None), User.last_digest_at < slot),
        )
        .values(last_digest_at=slot)
        .returning(User.id, User.name)
        .cte("due")
    )
    subject = literal("Good morning, ") + due.c.name + literal(f": {posts} new posts")
    digests = insert(Outbox).from_select(
        ["user_id", "slot", "subject", "post_count"],
        select(due.c.id, literal(slot), subject, literal(posts)),
    )
    return digests.execution_options(preserve_rowcount=True)
