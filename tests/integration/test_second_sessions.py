"""Sessions beside the run's: those of the job's own, and those of later work in a run's context."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy.events import ConnectionEvents
from sqlalchemy.exc import PendingRollbackError, SQLAlchemyError
from sqlalchemy.orm import Session

from flask_cronlock.joined import joined_class

from ..support.outcomes import error_of, value_of
from ..support.worlds import World


def test_work_in_a_copy_of_the_runs_context_is_not_the_jobs_after_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    copies: list[Context] = []
    world.cron.job("digest")(lambda: copies.append(copy_context()))
    value_of(world.run("digest"))

    with world.app.app_context():
        engine = world.db.engine

    def work_later() -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO note VALUES ('later')")

    with caplog.at_level(logging.INFO, "flask_cronlock"):
        copies[0].run(work_later)
    assert caplog.messages == []
    assert world.notes == ["later"]


def test_another_sessions_broken_transaction_is_not_taken_for_the_runs(world: World) -> None:
    @world.cron.job("digest")
    def digest() -> None:
        with Session(world.db.engine) as other:
            other.add(world.note_class(text="no text of PostgreSQL: \0"))
            with pytest.raises(SQLAlchemyError):
                other.flush()
            other.execute(world.db.text("SELECT 1"))

    assert isinstance(error_of(world.run("digest")), PendingRollbackError)


def add_in_a_context(world: World, _: Any) -> None:
    with world.app.app_context():
        world.db.session.add(world.note_class(text="lost"))


def merge_in_a_context(world: World, loaded: Any) -> None:
    with world.app.app_context():
        world.db.session.merge(loaded, load=False).text = "lost"


def change_what_the_caller_loaded(_: World, loaded: Any) -> None:
    loaded.text = "lost"


@pytest.mark.parametrize(
    "deed", [add_in_a_context, merge_in_a_context, change_what_the_caller_loaded]
)
def test_what_another_session_has_not_flushed_is_warned_of(
    make_world: Callable[..., World],
    caplog: pytest.LogCaptureFixture,
    deed: Callable[[World, Any], None],
) -> None:
    world = make_world(db=SQLAlchemy(session_options={"expire_on_commit": False}))
    with world.app.app_context():
        loaded = world.note_class(text="before")
        world.db.session.add(loaded)
        world.db.session.commit()
        world.cron.job("digest")(lambda: deed(world, loaded))

        value_of(world.cron.run("digest"))

    actions = [record.__dict__.get("action") for record in caplog.records]
    assert actions.count("second_transaction") == 1


def test_no_statement_of_the_app_pays_for_the_watch(world: World) -> None:
    world.cron.job("digest")(lambda: world.note("sent"))
    value_of(world.run("digest"))

    with world.app.app_context():
        engine = world.db.engine
    hooks = [name for name in dir(ConnectionEvents) if not name.startswith("_")]
    assert [name for name in hooks if getattr(engine.dispatch, name, ())] == []


def test_a_session_class_is_freed_with_its_app() -> None:
    base = type("Session", (FlaskSession,), {})
    assert joined_class(base) is joined_class(base)
    found = weakref.ref(base)
    del base
    gc.collect()
    assert found() is None
