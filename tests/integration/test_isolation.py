"""Whatever the engine's isolation is, a run is READ COMMITTED, and its connection goes back as
it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import text

from flask_cronlock import Reason
from flask_cronlock.exceptions import ForeignEngine, IsolationFixed

from ..support.databases import Database
from ..support.outcomes import LONG, elsewhere, error_of, reason_of, value_of
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database

AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT"}
ENGINES: dict[str, dict[str, Any]] = {
    "default": {},
    "autocommit": AUTOCOMMIT,
    "repeatable-read": {"isolation_level": "REPEATABLE READ"},
    "serializable": {"isolation_level": "SERIALIZABLE"},
    "autocommit-option": {"execution_options": AUTOCOMMIT},
    "serializable-option": {"execution_options": {"isolation_level": "SERIALIZABLE"}},
    "driver-autocommit": {"connect_args": {"autocommit": True}},
    "prepares-at-once": {"connect_args": {"prepare_threshold": 0}},
    "prepares-never": {"connect_args": {"prepare_threshold": None}},
}
ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}
PLACES: dict[str, dict[str, Any]] = {
    "of the bind": {"SQLALCHEMY_BINDS": {None: AUTOCOMMIT}},
    "options of the bind": {"SQLALCHEMY_BINDS": {None: {"execution_options": AUTOCOMMIT}}},
    "of the extension": {"db": AUTOCOMMIT},
}


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


@pytest.mark.parametrize("place", PLACES)
def test_wherever_autocommit_is_configured_a_failed_run_leaves_nothing(
    make_world: Callable[..., World], place: str
) -> None:
    how = dict(PLACES[place])
    if options := how.pop("db", None):
        how["db"] = SQLAlchemy(engine_options=options)
    world = make_world(**how)
    with world.app.app_context(), world.db.engine.connect() as connection:
        assert connection.connection.driver_connection.autocommit  # type: ignore[union-attr]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("gone")
        assert world.notes == []
        assert reason_of(elsewhere(lambda: world.run("digest"))) is Reason.ALREADY_RUNNING
        raise ValueError

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert world.notes == []


def by_session(world: World) -> None:
    world.db.session.connection(execution_options=AUTOCOMMIT)


def by_connection(world: World) -> None:
    world.note("gone")
    world.db.session.connection().execution_options(**AUTOCOMMIT)


@pytest.mark.parametrize("change", [by_session, by_connection])
def test_a_job_cannot_change_it_and_is_told_what_to_do(
    make_world: Callable[..., World], change: Callable[[World], None]
) -> None:
    world = make_world()

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        change(world)

    error = error_of(world.run("digest"))

    assert isinstance(error, IsolationFixed)
    assert "take isolation_level out of the job" in str(error)
    assert world.notes == world.runs() == []
    with world.app.app_context(), pytest.raises(IsolationFixed):
        world.cron.with_lock("cache", lambda _: change(world))


def test_options_that_change_no_isolation_are_left_to_the_job(
    make_world: Callable[..., World],
) -> None:
    world = make_world()

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session.connection(execution_options={"logging_token": "digest"})
        world.note("kept")

    value_of(world.run("digest"))
    assert world.notes == ["kept"]


def test_a_session_that_leads_to_an_engine_in_autocommit_fails_before_the_job(
    make_world: Callable[..., World], database: Database
) -> None:
    class Careless(Session):
        def get_bind(self, *args: Any, **kwargs: Any) -> Any:
            return self._db.engine.execution_options(**AUTOCOMMIT)

    make_world()
    with bare_world(database, db=SQLAlchemy(session_options={"class_": Careless})) as world:
        world.cron.job("digest", every=LONG)(world.mark)

        error = error_of(world.run("digest"))

        assert isinstance(error, ForeignEngine)
        assert "return db.engine from get_bind()" in str(error)
        assert world.marks == 0


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
