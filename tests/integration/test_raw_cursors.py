"""What the run's own connection says of a lost transaction is known for it on whichever way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from flask import Flask
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from flask_cronlock.exceptions import LockLost, TransactionEnded

from ..support.databases import Database
from ..support.locking import locked
from ..support.outcomes import LONG, error_of
from ..support.worlds import World, world_on

Say = Callable[[str], Any]
"""Executes a statement."""

ERRORS = (psycopg.Error, DBAPIError)
END = "SELECT pg_terminate_backend(%s, 5000)"


def on_a_cursor(world: World) -> Say:
    """Speak below SQLAlchemy, as libraries do that take a driver's connection."""
    raw = world.db.session.connection().connection
    return lambda sql: raw.cursor().execute(sql)


def swallow_on(say: Say) -> None:
    with contextlib.suppress(*ERRORS):
        say("SELECT 1/0")


def in_the_sessions_savepoint(world: World, say: Say) -> None:
    swallow_on(say)
    say("SELECT 1")


def after_the_sessions_commit(world: World, say: Say) -> None:
    world.db.session.commit()
    swallow_on(say)
    say("SELECT 1")


def in_a_savepoint_of_its_own(world: World, say: Say) -> None:
    with world.db.session.begin_nested():
        swallow_on(say)
        say("SELECT 1")


def after_the_end(world: World, say: Say) -> None:
    say("ROLLBACK")
    say("ROLLBACK TO SAVEPOINT gone")


def told_as_its_own_error(world: World, say: Say) -> None:
    try:
        in_the_sessions_savepoint(world, say)
    except psycopg.Error as error:
        raise ValueError("no digest") from error


@pytest.mark.parametrize(
    "deed",
    [
        in_the_sessions_savepoint,
        after_the_sessions_commit,
        in_a_savepoint_of_its_own,
        told_as_its_own_error,
    ],
)
def test_what_a_raw_cursor_of_the_runs_own_connection_says_is_a_lost_lock_too(
    world: World, deed: Callable[[World, Say], None]
) -> None:
    def work() -> None:
        world.note("gone")
        deed(world, on_a_cursor(world))

    world.cron.job("digest", every=LONG)(work)

    assert type(error_of(world.run("digest"))) is LockLost
    with pytest.raises(LockLost, match="begin_nested"):
        locked(world, "cache", lambda _: work())
    assert world.notes == []


def test_what_comes_of_a_raw_rollback_names_what_to_use_instead(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: after_the_end(world, on_a_cursor(world)))

    error = error_of(world.run("digest"))

    assert isinstance(error, TransactionEnded)
    assert "db.session.rollback()" in str(error)


def test_an_abort_that_the_job_has_undone_makes_no_others_error_the_runs(world: World) -> None:
    """Another connection's transaction is aborted after that."""

    def work() -> None:
        with contextlib.suppress(DBAPIError), world.db.session.begin_nested():
            world.db.session.execute(world.db.text("SELECT 1/0"))
        with contextlib.closing(psycopg.connect(world.database.conninfo)) as other:
            swallow_on(other.execute)
            other.execute("SELECT 1")

    world.cron.job("digest", every=LONG)(work)

    assert isinstance(error_of(world.run("digest")), psycopg.errors.InFailedSqlTransaction)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        locked(world, "cache", lambda _: work())


def test_a_connection_that_broke_and_is_used_again_is_a_lost_lock(world: World) -> None:
    def work() -> None:
        say = world.db.session.connection().exec_driver_sql
        world.database.query(END, say("SELECT pg_backend_pid()").scalar())
        with contextlib.suppress(DBAPIError):
            say("SELECT 1")
        say("SELECT 1")

    world.cron.job("digest", every=LONG)(work)

    assert type(error_of(world.run("digest"))) is LockLost
    with pytest.raises(LockLost):
        locked(world, "cache", lambda _: work())


def test_an_error_listener_of_the_app_that_fails_does_not_hide_that_the_lock_is_lost(
    database: Database,
) -> None:
    """It was there before ours."""

    def refuse(_: object) -> None:
        raise ValueError("as asked")

    def listen(app: Flask) -> None:
        with app.app_context():
            event.listen(app.extensions["sqlalchemy"].engine, "handle_error", refuse)

    with world_on(database, prepare=listen) as world:

        @world.cron.job("digest", every=LONG)
        def digest() -> None:
            say = world.db.session.connection().exec_driver_sql
            for _ in range(2):
                with contextlib.suppress(ValueError):
                    say("SELECT 1/0")
            world.db.session.execute(world.db.text("SELECT 1"))

        assert isinstance(error_of(world.run("digest")), LockLost)
