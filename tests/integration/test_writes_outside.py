"""What a job writes to the run's database apart from the run is refused before it is kept."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import insert, text
from sqlalchemy.exc import InternalError, SQLAlchemyError
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import ForeignTransaction, SessionReplaced

from ..support.outcomes import LONG, elsewhere, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

Deed = Callable[[World], Any]
WRITE = text("INSERT INTO note VALUES ('outside')")


def in_a_context(world: World) -> None:
    with world.app.app_context():
        world.db.session.execute(WRITE)
        world.db.session.commit()


def in_a_context_and_leave(world: World) -> None:
    with world.app.app_context():
        world.db.session.execute(WRITE)


def on_a_connection(world: World) -> None:
    with world.db.engine.begin() as connection:
        connection.execute(WRITE)


def in_a_session(world: World) -> None:
    with Session(world.db.engine) as session, session.begin():
        note = world.db.Table("note", world.db.metadata, world.db.Column("text", world.db.Text))
        session.execute(insert(note).values(text="outside"))


def on_the_driver(world: World) -> None:
    with contextlib.closing(world.db.engine.raw_connection()) as lent:
        lent.cursor().execute(WRITE.text)
        lent.commit()


def by_a_function(world: World) -> None:
    with world.db.engine.begin() as connection:
        connection.execute(text("SELECT write_note()"))


WAYS = [in_a_context, in_a_context_and_leave, on_a_connection, in_a_session, on_the_driver]


@pytest.mark.parametrize("write", [*WAYS, by_a_function])
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


@pytest.mark.parametrize("write", WAYS)
def test_work_under_a_lock_is_held_to_the_same(world: World, write: Deed) -> None:
    with world.app.app_context(), pytest.raises(ForeignTransaction, match=r"db\.session"):
        world.cron.with_lock("cache", lambda _: write(world))
    assert world.notes == []
    assert world.database.advisory_locks() == 0


def test_a_connection_in_autocommit_is_no_way_around(make_world: Callable[..., World]) -> None:
    world = make_world(engine_options={"isolation_level": "AUTOCOMMIT"})
    world.cron.job("digest", every=LONG)(lambda: on_a_connection(world))

    assert isinstance(error_of(world.run("digest")), ForeignTransaction)
    assert world.notes == []
    with world.app.app_context(), world.db.engine.connect() as connection:
        connection.execute(WRITE)
    assert world.notes == ["outside"]


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
    assert "db.session" in caplog.text


def test_a_job_may_read_there_and_is_warned(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.probe.execute("INSERT INTO note VALUES ('before')")

    @world.cron.job("digest", every=LONG)
    def digest() -> list[Any]:
        world.note("inside")
        with world.db.engine.connect() as connection:
            return list(connection.scalars(text("SELECT text FROM note")))

    assert value_of(world.run("digest")) == ["before"]
    assert [r.levelno for r in caplog.records].count(logging.WARNING) == 1


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


def test_an_error_of_the_runs_own_is_not_called_a_write_elsewhere(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with world.db.session.begin_nested():
            world.db.session.execute(text("SET LOCAL transaction_read_only = on"))
            world.note("inside")

    assert isinstance(error_of(world.run("digest")), InternalError)
