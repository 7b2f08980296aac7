"""Writes to another bind are outside the run's transaction, and a warning says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import insert, text

from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def other(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def world(make_world: Callable[..., World], other: Database) -> World:
    world = make_world(SQLALCHEMY_BINDS={"other": other.url})

    class Event(world.db.Model):  # type: ignore[name-defined, misc]
        __bind_key__ = "other"
        id = world.db.Column(world.db.Integer, primary_key=True)

    world.event = Event  # type: ignore[attr-defined]
    with world.app.app_context():
        world.db.create_all("other")
    return world


def by_flush(world: World) -> None:
    world.db.session.add(world.event())  # type: ignore[attr-defined]


def by_core(world: World) -> None:
    world.db.session.execute(insert(world.event.__table__))  # type: ignore[attr-defined]


def by_text(world: World) -> None:
    world.db.session.execute(text("INSERT INTO event DEFAULT VALUES"), bind_arguments=there(world))


def by_connection(world: World) -> None:
    connection = world.db.session.connection(bind_arguments=there(world))
    connection.execute(text("INSERT INTO event DEFAULT VALUES"))


def there(world: World) -> dict[str, Any]:
    return {"bind": world.db.engines["other"]}


@pytest.mark.parametrize("write", [by_flush, by_core, by_text, by_connection])
def test_a_write_to_another_bind_is_warned_of_and_outlives_the_rollback(
    world: World,
    other: Database,
    caplog: pytest.LogCaptureFixture,
    write: Callable[[World], None],
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        write(world)
        world.db.session.commit()
        raise ValueError

    error_of(world.run("digest"))

    assert world.notes == []
    assert other.value("SELECT count(*) FROM event") == 1
    actions = [record.__dict__.get("action") for record in caplog.records]
    assert actions.count("other_bind_written") == 1


@pytest.mark.parametrize("write", [by_flush, by_core, by_text, by_connection])
def test_what_a_job_has_not_committed_on_another_bind_goes_with_its_failure(
    world: World, other: Database, write: Callable[[World], None]
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        write(world)
        world.db.session.flush()
        raise ValueError

    error_of(world.run("digest"))

    assert other.value("SELECT count(*) FROM event") == 0


def test_another_bind_is_written_on_a_connection_of_its_own_engine(
    world: World, other: Database
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        by_flush(world)

    value_of(world.run("digest"))
    assert other.value("SELECT count(*) FROM event") == 1
    assert world.notes == ["inside"]


def read_by_model(world: World) -> int:
    return len(world.db.session.scalars(world.db.select(world.event)).all())  # type: ignore[attr-defined]


def read_by_text(world: World) -> int:
    statement = text("  select count(*) FROM event")
    return int(world.db.session.execute(statement, bind_arguments=there(world)).scalar_one())


@pytest.mark.parametrize("read", [read_by_model, read_by_text])
def test_reading_another_bind_is_not_warned_of(
    world: World, caplog: pytest.LogCaptureFixture, read: Callable[[World], int]
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> int:
        return read(world)

    assert value_of(world.run("digest")) == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
