"""A second connection of a job takes writes again when the job has ended, wherever it is then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import InternalError

from flask_cronlock.exceptions import ForeignTransaction

from ..support.clocks import engine_of
from ..support.outcomes import LONG, elsewhere, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

WRITE = text("INSERT INTO note VALUES ('later')")


def write(connection: Connection) -> None:
    connection.execute(WRITE)
    connection.commit()


@pytest.mark.parametrize("detached", [False, True])
def test_one_that_is_kept_beyond_the_job(world: World, detached: bool) -> None:
    kept: list[Connection] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        [connection] = kept[:] = [world.db.engine.connect()]
        if detached:
            connection.detach()
        with pytest.raises(InternalError):
            write(connection)
        connection.rollback()

    value_of(world.run("digest"))
    write(kept[0])
    assert world.notes == ["later"]
    driver: Any = kept[0].connection.dbapi_connection
    kept[0].close()
    assert driver.closed is detached


def test_one_that_is_in_a_transaction_when_the_job_ends_does_so_when_it_is_given_back(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 2, "max_overflow": 0})
    kept: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        kept.append(world.db.engine.connect())
        kept[0].execute(text("SELECT 1"))

    value_of(world.run("digest"))
    kept[0].close()
    with engine_of(world).connect() as first, engine_of(world).connect() as second:
        write(first)
        write(second)


def test_one_that_another_job_has_by_then_stays_read_only(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 3, "max_overflow": 0})
    begun, ended = threading.Event(), threading.Event()
    others: list[Future[Any]] = []

    @world.cron.job("second", every=LONG)
    def second() -> None:
        with world.db.engine.connect() as connection:
            begun.set()
            assert ended.wait(60)
            write(connection)

    with ThreadPoolExecutor(1) as thread:

        @world.cron.job("first", every=LONG)
        def first() -> None:
            with world.db.engine.connect(), world.db.engine.connect():
                pass
            others.append(thread.submit(world.run, "second"))
            assert begun.wait(60)

        value_of(world.run("first"))
        ended.set()
        assert isinstance(error_of(others[0].result(60)), ForeignTransaction)


def test_one_of_an_engine_that_two_apps_share(make_world: Callable[..., World]) -> None:
    world = make_world(engine_options={"pool_size": 2, "max_overflow": 0})
    shared = engine_of(world)

    class Sharing(SQLAlchemy):
        def _make_engine(self, _: str | None, __: dict[str, Any], ___: Flask) -> Engine:
            return shared

    make_world(db=Sharing())

    def write_in_a_thread() -> None:
        with shared.connect() as connection:
            write(connection)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with shared.connect() as connection, pytest.raises(InternalError):
            write(connection)
        elsewhere(write_in_a_thread)

    value_of(world.run("digest"))
    assert world.notes == ["later"]
