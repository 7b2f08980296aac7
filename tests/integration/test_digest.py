"""The sample's digest: every subscriber once for a slot, in ranges, or nobody at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from sqlalchemy import event, func, select, text
from sqlalchemy.exc import IntegrityError

from flask_cronlock import Failed, Ran, Reason, Skipped
from sample_app import outbox
from sample_app.digest import USERS_PER_STATEMENT, ZONE, digest_range, write_digests
from sample_app.extensions import cron, db
from sample_app.models import Outbox, User
from sample_app.seed import seed

from ..support.databases import Database
from ..support.samples import sample_on

SUBSCRIBERS = 20
UNSUBSCRIBED = 4
SLOT = datetime.now(ZoneInfo(ZONE)).replace(hour=7, minute=0, second=0, microsecond=0)


@pytest.fixture(autouse=True)
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, SUBSCRIBERS, UNSUBSCRIBED) as app, app.app_context():
        yield app
        db.session.remove()


def digests_per_user() -> dict[tuple[bool, int], int]:
    return outbox.per_user(db.session())


def test_every_subscriber_gets_one_digest_and_nobody_else_any() -> None:
    assert write_digests(db.session(), SLOT) == SUBSCRIBERS
    assert digests_per_user() == {(True, 1): SUBSCRIBERS, (False, 0): UNSUBSCRIBED}


def test_users_who_were_never_mailed_are_included() -> None:
    never_mailed = select(User.id).where(User.digest_enabled, User.last_digest_at.is_(None))
    new = set(db.session.scalars(never_mailed))
    assert 0 < len(new) < SUBSCRIBERS
    write_digests(db.session(), SLOT)
    assert new <= set(db.session.scalars(select(Outbox.user_id)))


def test_subscribers_are_stamped_with_the_slot() -> None:
    write_digests(db.session(), SLOT)
    stamped = select(func.count()).where(User.last_digest_at == SLOT)
    assert db.session.scalar(stamped) == SUBSCRIBERS


def test_a_second_run_for_the_same_slot_finds_nobody() -> None:
    write_digests(db.session(), SLOT)
    assert write_digests(db.session(), SLOT) == 0
    assert digests_per_user() == {(True, 1): SUBSCRIBERS, (False, 0): UNSUBSCRIBED}


def test_the_next_slot_mails_everybody_again() -> None:
    write_digests(db.session(), SLOT)
    assert write_digests(db.session(), SLOT + timedelta(days=1)) == SUBSCRIBERS


def test_an_older_slot_mails_nobody_who_has_a_newer_digest() -> None:
    write_digests(db.session(), SLOT)
    assert write_digests(db.session(), SLOT - timedelta(days=1)) == 0


@pytest.mark.parametrize("size", [1, 3, 7, SUBSCRIBERS + UNSUBSCRIBED, 1_000])
def test_ranges_of_any_size_skip_and_repeat_nobody(size: int) -> None:
    assert write_digests(db.session(), SLOT, size) == SUBSCRIBERS
    assert digests_per_user()[True, 1] == SUBSCRIBERS


def test_gaps_between_ids_lose_nobody() -> None:
    db.session.execute(text("DELETE FROM posts"))
    db.session.execute(text("DELETE FROM users WHERE id IN (1, 2, 3, 7, 11, 12, 13, 14)"))
    db.session.execute(text("UPDATE users SET id = id + 5000000000 WHERE id > 16"))
    assert write_digests(db.session(), SLOT, 3) == SUBSCRIBERS - 8
    assert digests_per_user()[True, 1] == SUBSCRIBERS - 8


def test_the_number_of_statements_depends_on_ranges_and_not_on_users() -> None:
    sent: list[str] = []
    db.session.execute(text("SELECT 1"))

    @event.listens_for(db.engine, "before_cursor_execute")
    def count(conn: object, cursor: object, statement: str, *rest: object) -> None:
        sent.append(statement)

    write_digests(db.session(), SLOT, SUBSCRIBERS + UNSUBSCRIBED)
    count_posts, bound, one_range, end = 1, 1, 1, 1
    assert len(sent) == count_posts + bound + one_range + end


def test_a_range_does_not_read_the_whole_table() -> None:
    seed(db.session(), 20_000)
    db.session.execute(text("ANALYZE users"))
    statement = str(
        digest_range(SLOT, 1, 5_000, 6_000).compile(
            db.engine, compile_kwargs={"literal_binds": True}
        )
    )
    plan = "\n".join(db.session.scalars(text("EXPLAIN " + statement.replace(":", r"\:"))))
    assert "Seq Scan on users" not in plan
    assert "users_pkey" in plan


def test_a_failure_in_a_later_range_takes_the_earlier_ones_back() -> None:
    forbid(SUBSCRIBERS)
    with pytest.raises(IntegrityError, match="forbidden"):
        write_digests(db.session(), SLOT, 5)
    db.session.rollback()
    assert nothing_was_written()


def test_the_job_writes_the_digests_of_its_slot_once() -> None:
    first, second = cron.run("daily-digest"), cron.run("daily-digest")
    assert isinstance(first, Ran)
    assert first.value == SUBSCRIBERS
    assert isinstance(second, Skipped)
    assert second.reason is Reason.ALREADY_RAN
    assert set(db.session.scalars(select(Outbox.slot))) == {first.slot}
    assert digests_per_user() == {(True, 1): SUBSCRIBERS, (False, 0): UNSUBSCRIBED}


def test_a_failed_job_leaves_neither_digests_nor_stamps_and_can_run_again() -> None:
    many = USERS_PER_STATEMENT + SUBSCRIBERS
    seed(db.session(), many)
    db.session.commit()
    forbid(db.session.scalars(select(func.max(User.id)).where(User.digest_enabled)).one())

    assert isinstance(cron.run("daily-digest"), Failed)
    assert nothing_was_written()

    permit()
    again = cron.run("daily-digest")
    assert isinstance(again, Ran)
    assert digests_per_user()[True, 1] == again.value >= USERS_PER_STATEMENT


def forbid(user: int) -> None:
    """Let the database refuse a digest for this user."""
    db.session.execute(
        text(f"ALTER TABLE outbox ADD CONSTRAINT forbidden CHECK (user_id <> {user})")
    )
    db.session.commit()


def permit() -> None:
    db.session.execute(text("ALTER TABLE outbox DROP CONSTRAINT forbidden"))
    db.session.commit()


def nothing_was_written() -> bool:
    digests = db.session.scalar(select(func.count()).select_from(Outbox))
    newest = db.session.scalar(select(func.max(User.last_digest_at)))
    db.session.rollback()
    return digests == 0 and newest is not None and newest < SLOT - timedelta(days=1)
