"""What a job's other connections go through is no loss of the run's own lock or time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from flask_cronlock.exceptions import LockLost
from flask_cronlock.sqlerrors import sqlstate

from ..support.clocks import engine_of
from ..support.databases import Database
from ..support.locking import locked
from ..support.outcomes import LONG, error_of, value_of
from ..support.processes import wait_until
from ..support.worlds import World

Say = Callable[[str], Any]
"""Executes a statement on another connection than the run's."""

ERRORS = (psycopg.Error, DBAPIError)
PID = "SELECT pg_backend_pid()"
END = "SELECT pg_terminate_backend(%s, 5000)"
END_RUNS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%'
"""


def be_ended(database: Database, say: Say) -> None:
    database.query(END, say(PID))
    say("SELECT 1")


def outlive(database: Database, say: Say, limit: str) -> None:
    backend = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    pid = say(PID)
    say(f"SELECT set_config('{limit}', '50ms', true)")
    wait_until(lambda: not database.query(backend, pid))
    say("SELECT 1")


def idle_too_long(database: Database, say: Say) -> None:
    outlive(database, say, "idle_in_transaction_session_timeout")


def take_too_long(database: Database, say: Say) -> None:
    outlive(database, say, "transaction_timeout")


def sleep_too_long(_: Database, say: Say) -> None:
    say("SELECT set_config('statement_timeout', '50ms', true)")
    say("SELECT pg_sleep(60)")


def swallow(_: Database, say: Say) -> None:
    with contextlib.suppress(*ERRORS):
        say("SELECT 1/0")
    say("SELECT 1")


def lose_a_savepoint(_: Database, say: Say) -> None:
    say("ROLLBACK TO SAVEPOINT gone")


@contextmanager
def of_driver(world: World) -> Iterator[Say]:
    with contextlib.closing(psycopg.connect(world.database.conninfo)) as driver:
        yield lambda sql: _first(driver.execute(sql))


@contextmanager
def of_second_engine(world: World) -> Iterator[Say]:
    with create_engine(world.database.url, poolclass=NullPool).connect() as connection:
        yield _saying(connection)


@contextmanager
def of_same_engine(world: World) -> Iterator[Say]:
    with world.db.engine.connect() as connection:
        yield _saying(connection)


def _saying(connection: Connection) -> Say:
    return lambda sql: _first(connection.exec_driver_sql(sql))


def _first(result: Any) -> Any:
    row = result.fetchone() if getattr(result, "description", True) else None
    return row[0] if row else None


@pytest.mark.parametrize("opened", [of_driver, of_second_engine, of_same_engine])
@pytest.mark.parametrize(
    ("deed", "state"),
    [
        (be_ended, "57P01"),
        (idle_too_long, "25P03"),
        (take_too_long, "25P04"),
        (sleep_too_long, "57014"),
        (swallow, "25P02"),
        (lose_a_savepoint, "3B001"),
    ],
)
def test_a_job_whose_other_connection_broke_fails_of_that_very_error(
    world: World,
    opened: Callable[[World], AbstractContextManager[Say]],
    deed: Callable[[Database, Say], None],
    state: str,
) -> None:
    raised: list[Exception] = []

    def work() -> None:
        world.note("gone")
        try:
            with opened(world) as say:
                deed(world.database, say)
        except ERRORS as error:
            raised.append(error)
            raise

    world.cron.job("digest", every=LONG)(work)

    failed = error_of(world.run("digest"))
    with pytest.raises(ERRORS) as told:
        locked(world, "cache", lambda _: work())

    assert [failed, told.value] == raised
    assert [sqlstate(error) for error in raised] == [state, state]
    assert world.notes == []
    assert [error.partition(":")[0] for _, error in world.attempts()] == [type(failed).__name__]


def test_where_the_runs_own_connection_broke_too_its_lock_is_lost(world: World) -> None:
    """It need not have been used since: it is seen to when it is given back."""
    whole = False

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        if whole:
            return
        with of_driver(world) as say:
            world.database.query(END_RUNS)
            be_ended(world.database, say)

    assert isinstance(error_of(world.run("digest")), LockLost)
    whole = True
    value_of(world.run("digest"))


@pytest.mark.parametrize("statement", ["SELECT 1", "ROLLBACK TO SAVEPOINT gone"])
def test_what_the_runs_own_connection_says_of_an_aborted_transaction_is_a_lost_lock(
    world: World, statement: str
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        say = _saying(world.db.session.connection())
        with contextlib.suppress(DBAPIError):
            say("SELECT 1/0")
        say(statement)

    assert isinstance(error_of(world.run("digest")), LockLost)


def test_what_becomes_of_the_connection_once_it_was_given_back_is_anothers(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with of_driver(world) as say:
            be_ended(world.database, say)

    def lose(driver: psycopg.Connection[Any], _: object) -> None:
        driver.close()

    event.listen(engine_of(world), "checkin", lose, once=True)
    assert isinstance(error_of(world.run("digest")), psycopg.errors.AdminShutdown)


def test_what_a_listener_of_the_app_raises_on_the_runs_connection_is_the_outcome(
    world: World,
) -> None:
    def refuse(*about: Any) -> None:
        if "note" in about[2]:
            raise ValueError("as asked")

    event.listen(engine_of(world), "before_cursor_execute", refuse)
    world.cron.job("digest", every=LONG)(lambda: world.note("gone"))

    assert isinstance(error_of(world.run("digest")), ValueError)


def test_a_pool_listener_that_fails_for_a_broken_connection_does_not_hide_that_the_lock_is_lost(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 0, "pool_timeout": 5})
    whole = False

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        if not whole:
            with of_driver(world) as say:
                world.database.query(END_RUNS)
                be_ended(world.database, say)

    def refuse(*_: object) -> None:
        raise ValueError("as asked")

    event.listen(engine_of(world), "invalidate", refuse, once=True)
    assert isinstance(error_of(world.run("digest")), LockLost)
    whole = True
    value_of(world.run("digest"))
