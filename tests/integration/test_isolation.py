"""Whatever the engine's isolation is, a run is READ COMMITTED, and its connection goes back as
it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.outcomes import LONG, elsewhere, error_of, reason_of, value_of
from ..support.worlds import World

ENGINES: dict[str, dict[str, Any]] = {
    "default": {},
    "autocommit": {"isolation_level": "AUTOCOMMIT"},
    "repeatable-read": {"isolation_level": "REPEATABLE READ"},
    "serializable": {"isolation_level": "SERIALIZABLE"},
    "autocommit-option": {"execution_options": {"isolation_level": "AUTOCOMMIT"}},
    "serializable-option": {"execution_options": {"isolation_level": "SERIALIZABLE"}},
    "driver-autocommit": {"connect_args": {"autocommit": True}},
    "prepares-at-once": {"connect_args": {"prepare_threshold": 0}},
    "prepares-never": {"connect_args": {"prepare_threshold": None}},
}
ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}


@pytest.fixture
def database(emptied_database: Database) -> Database:
    return emptied_database


@pytest.fixture(params=ENGINES)
def world(make_world: Callable[..., World], request: pytest.FixtureRequest) -> World:
    world = make_world(engine_options={**ONE, **ENGINES[request.param]})
    with world.app.app_context():
        world.db.engine.dispose()  # init-db has been on its connection
        with world.db.engine.connect():  # SQLAlchemy leaves marks of its own at the first use
            pass
    return world


def driver_state(world: World) -> tuple[Any, ...]:
    """Return what a pooled connection is like, below SQLAlchemy and as SQLAlchemy hands it out."""
    with world.app.app_context():
        fairy = world.db.engine.raw_connection()
        driver = fairy.driver_connection
        found = (driver.autocommit, driver.isolation_level, driver.prepare_threshold)  # type: ignore[union-attr]
        pid = driver.info.backend_pid  # type: ignore[union-attr]
        fairy.close()
        with world.db.engine.connect() as connection:
            level = connection.get_isolation_level()
            shown = connection.execute(text("SHOW transaction_isolation")).scalar()
            settings = connection.execute(
                text(
                    "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),"
                    " current_setting('idle_in_transaction_session_timeout'),"
                    " current_setting('application_name')"
                )
            ).one()
    return (*found, pid, level, shown, *settings)


def test_a_job_sees_read_committed_and_the_connection_goes_back_as_it_was(world: World) -> None:
    @world.cron.job("good", every=LONG)
    def good() -> Any:
        world.note("kept")
        session = world.db.session
        before = session.scalar(text("SELECT count(*) FROM mark"))
        world.mark()
        after = session.scalar(text("SELECT count(*) FROM mark"))
        return [session.scalar(text("SHOW transaction_isolation")), before, after]

    @world.cron.job("bad", every=LONG)
    def bad() -> None:
        world.note("gone")
        raise ValueError

    state = driver_state(world)

    assert value_of(world.run("good")) == ["read committed", 0, 1]
    assert driver_state(world) == state
    error_of(world.run("bad"))
    assert driver_state(world) == state
    assert reason_of(world.run("good")) is Reason.ALREADY_RAN
    assert driver_state(world) == state
    assert world.notes == ["kept"]


def test_exclusion_holds(make_world: Callable[..., World], world: World) -> None:
    other = make_world()
    other.cron.job("digest", every=LONG)(other.mark)
    meanwhile: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("kept")
        meanwhile.append(elsewhere(lambda: other.run("digest")))
        assert world.notes == []

    value_of(world.run("digest"))

    assert reason_of(meanwhile[0]) is Reason.ALREADY_RUNNING
    assert reason_of(other.run("digest")) is Reason.ALREADY_RAN
    assert world.marks == 0


def test_a_roles_own_defaults_are_overruled_too(world: World, database: Database) -> None:
    default = f"ALTER DATABASE {database.name} SET default_transaction_isolation ="
    database.query(f"{default} 'serializable'")
    with world.app.app_context():
        world.db.engine.dispose()

    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        return world.db.session.scalar(text("SHOW transaction_isolation"))

    try:
        assert value_of(world.run("digest")) == "read committed"
    finally:
        database.query(f"{default} DEFAULT")
