"""The suite's PostgreSQL and PgBouncer, and a fresh database for every test."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flask_cronlock import runner

from .support.bodies import Gate
from .support.databases import Database, Server, fresh_database, temporary
from .support.pgbouncer import PgBouncer, pgbouncer_before
from .support.wire import Wire, wire_before
from .support.worlds import World, world_on


def pytest_configure(config: pytest.Config) -> None:
    # Where the tests run in a shell's background SIGINT is ignored, by what they start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "shared_database: the module has one database, emptied before each test"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a report travel between processes: what some tests log is no valid text."""
    report = yield
    report.sections = [
        (name, content.encode(errors="backslashreplace").decode())
        for name, content in report.sections
    ]
    return report


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with temporary() as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres: Server) -> Iterator[PgBouncer]:
    with pgbouncer_before(postgres) as pooler:
        yield pooler


@pytest.fixture(scope="session")
def template(postgres: Server) -> Iterator[str]:
    """A database with all tables: a copy of it is sooner there than its tables are made anew."""
    with fresh_database(postgres) as made:
        with world_on(made):
            pass
        yield made.name


@pytest.fixture
def database(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Database]:
    """A fresh database, or the module's one, emptied, where it is marked as shared.

    It is bare, unless a world is to be on it.
    """
    if request.node.get_closest_marker("shared_database"):
        yield request.getfixturevalue("module_database").emptied()
        return
    has_world = {"world", "make_world"} & set(request.fixturenames)
    like = {"like": request.getfixturevalue("template")} if has_world else {}
    with fresh_database(postgres, **like) as made:
        yield made


@pytest.fixture(params=["direct", "pgbouncer"])
def route(request: pytest.FixtureRequest, database: Database) -> str:
    """The app's way to its database: both are taken by each test that asks for this."""
    if request.param == "direct":
        return database.url
    pooler: PgBouncer = request.getfixturevalue("pgbouncer")
    return pooler.url(database)


@pytest.fixture
def wire(database: Database) -> Iterator[Wire]:
    with wire_before(database) as made:
        yield made


@pytest.fixture
def world(database: Database) -> Iterator[World]:
    with world_on(database) as made:
        yield made


@pytest.fixture(scope="module")
def module_database(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture(scope="module")
def module_world(module_database: Database) -> Iterator[World]:
    with world_on(module_database) as made:
        yield made


@pytest.fixture
def entered_world(module_world: World) -> Iterator[World]:
    """The module's one world, its database emptied, in its app context."""
    module_world.database.emptied()
    with module_world.app.app_context():
        yield module_world


@pytest.fixture(scope="module")
def served(module_world: World) -> World:
    """The module's one world with one job, ``x``, without slots: each time it runs is marked."""
    module_world.cron.job("x")(module_world.mark)
    return module_world


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """Undo what a command set up for its log that was run in this process."""
    logger = logging.getLogger("flask_cronlock")
    level, handlers = logger.level, [*logger.handlers]
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def make_world(database: Database) -> Iterator[Callable[..., World]]:
    """Build worlds on the test's one database, each with its own options."""
    with ExitStack() as stack:

        def make(**how: Any) -> World:
            return stack.enter_context(world_on(database, **how))

        yield make


@pytest.fixture
def another_release(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let runs that begin from now on compute another lock key."""

    def deploy() -> None:
        monkeypatch.setattr(runner, "lock_texts", lambda *about: [f"v2:{about}"])

    return deploy
