"""Which errors are told as a write that was refused on a second connection, and which are not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, InternalError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from flask_cronlock.exceptions import ForeignTransaction, LockLost

from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

WRITE = text("INSERT INTO note VALUES ('outside')")
READ_ONLY = "-c default_transaction_read_only=on"


def sending(statement: str, world: World) -> Callable[[], None]:
    def send() -> None:
        with world.db.engine.begin() as connection:
            connection.execute(text(statement))

    return send


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM note FOR UPDATE",
        "SELECT nextval('numbers')",
        "CREATE TEMP TABLE made (id int)",
    ],
)
def test_what_is_no_plain_read_is_refused(world: World, statement: str) -> None:
    world.probe.execute("CREATE SEQUENCE IF NOT EXISTS numbers")
    world.cron.job("digest", every=LONG)(sending(statement, world))

    assert isinstance(error_of(world.run("digest")), ForeignTransaction)


@pytest.mark.parametrize(
    "statement",
    [
        "NOTIFY told",
        "SET TRANSACTION READ WRITE; INSERT INTO note VALUES ('outside')",
        "SELECT pg_advisory_xact_lock(1)",
        "LOCK TABLE note",
    ],
)
def test_what_the_server_takes_in_a_read_only_transaction_is_not(
    world: World, statement: str
) -> None:
    world.cron.job("digest", every=LONG)(sending(statement, world))
    value_of(world.run("digest"))


def flush_and_go_on(world: World) -> None:
    with Session(world.db.engine) as other:
        other.add(world.note_class(text="outside"))
        with contextlib.suppress(SQLAlchemyError):
            other.flush()
        other.execute(text("SELECT 1"))


def write_and_go_on(world: World) -> None:
    with world.db.engine.connect() as connection:
        with contextlib.suppress(SQLAlchemyError):
            connection.execute(WRITE)
        connection.execute(text("SELECT 1"))


@pytest.mark.parametrize("deed", [flush_and_go_on, write_and_go_on])
def test_what_comes_of_a_refusal_that_was_swallowed_is_told_as_the_refusal(
    world: World, deed: Callable[[World], None]
) -> None:
    world.cron.job("digest", every=LONG)(lambda: deed(world))

    failed = error_of(world.run("digest"))

    assert isinstance(failed, ForeignTransaction)
    assert isinstance(failed.__cause__, SQLAlchemyError)


def on_another_engine(world: World) -> None:
    other = create_engine(
        world.database.url, poolclass=NullPool, connect_args={"options": READ_ONLY}
    )
    with other.begin() as connection:
        connection.execute(WRITE)


def in_the_run(world: World) -> None:
    with world.db.session.begin_nested():
        world.db.session.execute(text("SET LOCAL transaction_read_only = on"))
        world.note("inside")


@pytest.mark.parametrize("write", [on_another_engine, in_the_run])
def test_a_server_that_takes_no_writes_is_not_called_a_second_connection(
    world: World, write: Callable[[World], None]
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with world.db.engine.connect() as connection:
            connection.execute(text("SELECT 1"))
            write(world)

    assert isinstance(error_of(world.run("digest")), InternalError)


def test_an_aborted_transaction_of_the_runs_own_is_a_lost_lock_whatever_was_refused(
    world: World,
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with contextlib.suppress(SQLAlchemyError), world.db.engine.begin() as connection:
            connection.execute(WRITE)
        run: Any = world.db.session.connection()
        with contextlib.suppress(DBAPIError):
            run.exec_driver_sql("SELECT 1/0")
        run.exec_driver_sql("SELECT 1")

    failed = error_of(world.run("digest"))
    assert isinstance(failed, LockLost)
    assert isinstance(failed.__cause__, DBAPIError)
    assert isinstance(failed.__cause__.orig, psycopg.errors.InFailedSqlTransaction)
