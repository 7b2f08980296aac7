"""Sessions beside the run's: those of the job's own, and those of later work in a run's context."""

from __future__ import annotations

import gc
import logging
import weakref
from contextvars import Context, copy_context

import pytest
from flask_sqlalchemy.session import Session as FlaskSession
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
            connection.exec_driver_sql("SELECT 1")

    with caplog.at_level(logging.WARNING, "flask_cronlock"):
        copies[0].run(work_later)
    assert caplog.messages == []


def test_another_sessions_broken_transaction_is_not_taken_for_the_runs(world: World) -> None:
    @world.cron.job("digest")
    def digest() -> None:
        class Note(world.db.Model):  # type: ignore[name-defined, misc]
            __table__ = world.db.Table(
                "note", world.db.metadata, world.db.Column("text", world.db.Text, primary_key=True)
            )

        with Session(world.db.engine) as other:
            other.execute(world.db.text("CREATE TEMPORARY TABLE note (text int) ON COMMIT DROP"))
            other.add(Note(text="no number"))
            with pytest.raises(SQLAlchemyError):
                other.flush()
            other.execute(world.db.text("SELECT 1"))

    assert isinstance(error_of(world.run("digest")), PendingRollbackError)


def test_a_session_class_is_freed_with_its_app() -> None:
    base = type("Session", (FlaskSession,), {})
    assert joined_class(base) is joined_class(base)
    found = weakref.ref(base)
    del base
    gc.collect()
    assert found() is None
