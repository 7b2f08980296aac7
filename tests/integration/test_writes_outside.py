"""What a job writes to the run's database apart from the run is refused before it is kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import insert, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import ForeignTransaction, SessionReplaced

from ..support.apart import WRITE, in_a_context, on_a_connection
from ..support.outcomes import LONG, elsewhere, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

Deed = Callable[[World], Any]


def in_a_context_and_leave(world: World) -> None:
    with world.app.app_context():
        world.db.session.execute(WRITE)


def in_a_session(world: World) -> None:
    with Session(world.db.engine) as session, session.begin():
        note = world.db.Table("note", world.db.metadata, world.db.Column("text", world.db.Text))
        session.execute(insert(note).values(text="outside"))


def on_the_driver(world: World) -> None:
    with contextlib.closing(world.db.engine.raw_connection()) as lent:
        lent.cursor().execute(WRITE.text)
        lent.commit()


def in_a_thread_of_asyncio(world: World) -> None:
    asyncio.run(asyncio.to_thread(on_a_connection, world))


def by_a_function(world: World) -> None:
    with world.db.engine.begin() as connection:
        connection.execute(text("SELECT write_note()"))


WAYS = [in_a_context, in_a_context_and_leave, on_a_connection, in_a_session, on_the_driver]


@pytest.mark.parametrize("write", [*WAYS, by_a_function, in_a_thread_of_asyncio])
def test_the_run_fails_and_is_told_where_to_write(world: World, write: Deed) -> None:
    world.database.query(
        "CREATE OR REPLACE FUNCTION write_note() RETURNS void LANGUAGE sql AS"
        " $$ INSERT INTO note VALUES ('outside') $$"
    )

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        write(world)

    error = error_of(world.run("digest"))

    assert isinstance(error, ForeignTransaction)
    assert "db.session in the context that the job is called in" in str(error)
    assert world.notes == world.runs() == []
    [(_, recorded)] = world.attempts()
    assert "db.session" in recorded
    assert world.post("digest").status_code == 500


@pytest.mark.parametrize(
    "options",
    [
        {"isolation_level": "AUTOCOMMIT"},
        {"execution_options": {"isolation_level": "AUTOCOMMIT"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("variant", [{}, {"postgresql_readonly": False}], ids=str)
def test_an_engine_in_autocommit_keeps_it_with_a_warning(
    make_world: Callable[..., World],
    caplog: pytest.LogCaptureFixture,
    options: dict[str, Any],
    variant: dict[str, Any],
) -> None:
    world = make_world(engine_options=options)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        with world.db.engine.execution_options(**variant).connect() as connection:
            connection.execute(WRITE)
        raise ValueError

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert world.notes == ["outside"]
    assert "kept or lost apart" in caplog.text


def test_a_job_that_removed_its_session_is_told_of_that(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session.remove()
        world.note("outside")

    assert isinstance(error_of(world.run("digest")), SessionReplaced)
    assert world.notes == []


def test_a_refusal_that_the_job_swallows_keeps_nothing_outside_and_the_run_whole(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        with contextlib.suppress(SQLAlchemyError):
            on_a_connection(world)

    value_of(world.run("digest"))
    assert world.notes == ["inside"]
    assert [r.levelno for r in caplog.records].count(logging.WARNING) == 1
    assert "was refused. Use db.session" in caplog.text


def test_a_job_may_read_there_and_is_told_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_cronlock")
    world.probe.execute("INSERT INTO note VALUES ('before')")

    @world.cron.job("digest", every=LONG)
    def digest() -> list[Any]:
        world.note("inside")
        with world.db.engine.connect() as connection:
            return list(connection.scalars(text("SELECT text FROM note")))

    assert value_of(world.run("digest")) == ["before"]
    [told] = [r for r in caplog.records if r.__dict__.get("action") == "second_transaction"]
    assert told.levelno == logging.INFO
    assert "for reading only" in told.getMessage()


@pytest.mark.parametrize(
    "options", [{"postgresql_readonly": False}, {"isolation_level": "AUTOCOMMIT"}], ids=str
)
def test_what_is_to_be_kept_whatever_becomes_of_the_run_is_written_by_option(
    world: World, options: dict[str, Any]
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        with world.db.engine.connect() as connection:
            connection.execution_options(**options).execute(WRITE)
            connection.commit()
        raise ValueError

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert world.notes == ["outside"]


@pytest.mark.parametrize("reset", ["rollback", None])
@pytest.mark.parametrize("write", [on_a_connection, in_a_context, on_the_driver])
def test_the_pools_connections_take_writes_again_when_they_are_back(
    make_world: Callable[..., World], write: Deed, reset: str | None
) -> None:
    pool = {"pool_size": 2, "max_overflow": 0, "pool_reset_on_return": reset}
    world = make_world(engine_options=pool)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session.execute(text("SELECT 1"))
        write(world)

    error_of(world.run("digest"))
    with world.app.app_context():
        engine = world.db.engine
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            connection.execute(WRITE)
            connection.commit()
    assert world.notes == ["outside"] * 2


def test_a_connection_that_was_opened_before_is_not_seen(world: World) -> None:
    with world.app.app_context(), world.db.engine.connect() as connection:

        @world.cron.job("digest", every=LONG)
        def digest() -> None:
            connection.execute(WRITE)
            connection.commit()

        value_of(world.cron.run("digest"))
    assert world.notes == ["outside"]


def test_another_thread_and_another_apps_engine_are_not_held(
    make_world: Callable[..., World],
) -> None:
    world, other = make_world(), make_world(db=SQLAlchemy())

    def through_the_other() -> None:
        with other.app.app_context():
            on_a_connection(other)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        elsewhere(lambda: in_a_context(world))
        through_the_other()

    value_of(world.run("digest"))
    assert world.notes == ["outside"] * 2
