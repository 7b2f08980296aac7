"""An SQL error that was swallowed aborts the transaction: its commit says so, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import TransactionAborted

from ..support.tasks import deferred, rows
from ..support.worlds import World

Abort = Callable[[Session], Any]


@pytest.fixture
def world(entered_world: World) -> World:
    entered_world.cron.task("send")(lambda n: None)
    return entered_world


def through_the_session(session: Session) -> None:
    session.execute(text("SELECT 1/0"))


def through_the_connection(session: Session) -> None:
    session.connection().execute(text("SELECT 1/0"))


def below_sqlalchemy(session: Session) -> None:
    driver: Any = session.connection().connection.driver_connection
    driver.execute("SELECT 1/0")


ABORTS = [through_the_session, through_the_connection, below_sqlalchemy]


@pytest.mark.parametrize("abort", ABORTS)
def test_a_commit_after_a_swallowed_error_raises_and_keeps_nothing(
    world: World, abort: Abort
) -> None:
    session = world.db.session()
    world.cron.defer(session, "send", n=1)
    world.note("stamped")
    with suppress(Exception):
        abort(session)

    with pytest.raises(TransactionAborted, match="begin_nested"):
        session.commit()

    session.rollback()
    assert rows(world) == []
    assert world.notes == []


DEFERRING: dict[str, Abort] = {
    "defer_many": lambda s: world_of(s).cron.defer_many(s, "send", [{"n": 1}]),
    "defer_from": lambda s: world_of(s).cron.defer_from(
        s, "send", select(func.generate_series(1, 2).label("n"))
    ),
    "once": lambda s: world_of(s).cron.once("key", s),
}


def world_of(session: Session) -> World:
    found: World = session.info["world"]
    return found


@pytest.mark.parametrize("name", DEFERRING)
def test_so_it_is_however_it_was_deferred(world: World, name: str) -> None:
    session = world.db.session()
    session.info["world"] = world
    DEFERRING[name](session)
    with suppress(Exception):
        through_the_session(session)
    with pytest.raises(TransactionAborted):
        session.commit()
    session.rollback()


@pytest.mark.parametrize("abort", ABORTS)
def test_an_error_inside_a_savepoint_leaves_the_rest(world: World, abort: Abort) -> None:
    session = world.db.session()
    world.cron.defer(session, "send", n=1)
    with suppress(Exception), session.begin_nested():
        world.cron.defer(session, "send", n=2)
        abort(session)
    world.note("stamped")
    session.commit()
    assert deferred(world) == [{"n": 1}]
    assert world.notes == ["stamped"]


def test_after_a_rollback_the_session_is_as_good_as_new(world: World) -> None:
    session = world.db.session()
    for n in range(3):
        world.cron.defer(session, "send", n=n)
        with suppress(DBAPIError):
            through_the_session(session)
        with pytest.raises(TransactionAborted):
            session.commit()
        session.rollback()
    world.cron.defer(session, "send", n=3)
    session.commit()
    world.note("without deferring")
    session.commit()
    assert deferred(world) == [{"n": 3}]
    assert world.notes == ["without deferring"]


def test_a_session_that_begins_with_an_error_defers_nothing(world: World) -> None:
    session = world.db.session()
    with suppress(DBAPIError):
        through_the_session(session)
    with pytest.raises(DBAPIError, match="current transaction is aborted"):
        world.cron.defer(session, "send", n=1)
    session.rollback()
    assert rows(world) == []
