"""The sample's digest and its mails: both are there when the run commits, or neither."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import pytest
from flask import Flask
from sqlalchemy import event

from flask_cronlock import Failed, Ran, Skipped
from sample_app import digest
from sample_app.digest import MAILS_PER_TASK
from sample_app.extensions import cron, db
from sample_app.seed import seed

from ..support.databases import Database
from ..support.samples import sample_on

SUBSCRIBERS = MAILS_PER_TASK + 5
DEFERRED = (
    "SELECT (jsonb_array_elements(args->'items')->>'digest_id')::bigint FROM procrastinate_jobs"
)


@pytest.fixture(autouse=True)
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, SUBSCRIBERS, 4) as app, app.app_context():
        yield app
        db.session.remove()


def run() -> Ran | Skipped | Failed:
    return cron.run("daily-digest")


def test_each_digest_has_one_mail(database: Database) -> None:
    outcome = run()
    assert isinstance(outcome, Ran)
    assert outcome.value == SUBSCRIBERS
    written = database.query("SELECT id FROM outbox ORDER BY 1")
    assert len(written) == SUBSCRIBERS
    assert sorted(database.query(DEFERRED)) == written


def test_a_late_duplicate_defers_no_mail(database: Database) -> None:
    run()
    assert isinstance(run(), Skipped)
    assert len(database.query(DEFERRED)) == SUBSCRIBERS


def test_a_failed_run_leaves_no_mail_behind(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "USERS_PER_STATEMENT", 5)
    database.query("ALTER TABLE outbox ADD CHECK (user_id <> 20)")
    assert isinstance(run(), Failed)
    assert database.query(DEFERRED) == []
    assert database.value("SELECT count(*) FROM outbox") == 0


def test_the_mails_of_all_ranges_are_deferred(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "USERS_PER_STATEMENT", 7)
    run()
    assert len(set(database.query(DEFERRED))) == SUBSCRIBERS


@pytest.mark.parametrize("more", [0, 4 * MAILS_PER_TASK])
def test_one_statement_writes_and_defers_them_however_many_there_are(
    database: Database, more: int
) -> None:
    seed(db.session(), SUBSCRIBERS + more, 0)
    db.session.commit()
    sent: list[str] = []

    @event.listens_for(db.engine, "before_cursor_execute")
    def count(conn: object, cursor: object, statement: str, *rest: object) -> None:
        sent.append(statement)

    run()
    event.remove(db.engine, "before_cursor_execute", count)
    assert len([statement for statement in sent if "INTO outbox" in statement]) == 1
    assert not [statement for statement in sent if statement.startswith("INSERT INTO outbox")]
    mails = database.value("SELECT count(*) FROM outbox")
    rows = database.value("SELECT count(*) FROM procrastinate_jobs")
    assert rows == ceil(mails / MAILS_PER_TASK)


def test_the_mails_wait_in_a_queue_of_their_own(database: Database) -> None:
    run()
    rows = database.query("SELECT DISTINCT queue_name, task_name FROM procrastinate_jobs")
    assert rows == [("cronlock.mail", "send-digest")]
