"""A subscriber of job_started has its own errors and transactions, and the job none of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text

from flask_cronlock import job_started
from flask_cronlock.exceptions import SplitSession

from ..support.apart import WRITE, in_a_context, on_a_connection
from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, error_of, value_of
from ..support.splitters import ByWrites
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database


@pytest.fixture
def other(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        made.query("CREATE TABLE note (text text)")
        yield made


@pytest.fixture
def world(make_world: Callable[..., World], other: Database) -> World:
    return make_world(SQLALCHEMY_BINDS={"other": other.url})


def on_another_bind(world: World) -> None:
    world.db.session.execute(WRITE, bind_arguments={"bind": world.db.engines["other"]})
    world.db.session.commit()


@pytest.mark.parametrize("write", [in_a_context, on_a_connection, on_another_bind])
def test_what_it_commits_elsewhere_is_kept_and_the_job_runs(
    world: World, other: Database, caplog: pytest.LogCaptureFixture, write: Callable[[World], None]
) -> None:
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))

    with job_started.connected_to(lambda app, **_: write(world), world.app):
        value_of(world.run("digest"))

    kept = world.notes + [row[0] for row in other.query("SELECT text FROM note")]
    assert sorted(kept) == ["outside", "sent"]
    said = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert not [words for words in said if words.startswith("The job")]


def test_the_job_is_watched_after_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with world.app.app_context():
            world.db.session.execute(text("SELECT 1"))

    with job_started.connected_to(lambda app, **_: in_a_context(world), world.app):
        value_of(world.run("digest"))

    actions = [record.__dict__.get("action") for record in caplog.records]
    assert actions.count("second_transaction") == 1


def test_a_session_that_the_run_refuses_is_told_of_once_as_the_jobs(
    world: World, database: Database, other: Database, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    db = SQLAlchemy(session_options={"class_": ByWrites})
    with bare_world(database, db=db, SQLALCHEMY_BINDS={"replica": other.url}) as split:
        split.cron.job("digest", every=LONG)(split.mark)
        with job_started.connected_to(lambda app, **about: heard.append(about), split.app):
            error = error_of(split.run("digest"))

    assert isinstance(error, SplitSession)
    assert len(heard) == 1
    actions = [record.__dict__.get("action") for record in caplog.records]
    assert "subscriber_failed" not in actions
