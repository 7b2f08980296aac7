"""The suite's PostgreSQL and PgBouncer, and a fresh database for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .support.databases import Database, Server, fresh_database, temporary
from .support.pgbouncer import PgBouncer, pgbouncer_before
from .support.worlds import World, world_on


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with temporary() as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres: Server) -> Iterator[PgBouncer]:
    with pgbouncer_before(postgres) as pooler:
        yield pooler


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture(params=["direct", "pgbouncer"])
def route(request: pytest.FixtureRequest, database: Database) -> str:
    """The app's way to its database: both are taken by each test that asks for this."""
    if request.param == "direct":
        return database.url
    pooler: PgBouncer = request.getfixturevalue("pgbouncer")
    return pooler.url(database)


@pytest.fixture
def world(database: Database) -> Iterator[World]:
    with world_on(database) as made:
        yield made


@pytest.fixture(scope="module")
def module_database(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def emptied_database(module_database: Database) -> Database:
    """The module's one database, emptied: for modules whose many tests change no table."""
    tables = module_database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        module_database.query(f'TRUNCATE "{table}"')
    return module_database


@pytest.fixture(scope="module")
def served(module_database: Database) -> Iterator[World]:
    """A module's own world with one job, ``x``, that has no slots: each time it runs is marked."""
    with world_on(module_database) as made:
        made.cron.job("x")(made.mark)
        yield made


@pytest.fixture
def make_world(database: Database) -> Iterator[Callable[..., World]]:
    """Build worlds on the test's one database, each with its own options."""
    with ExitStack() as stack:

        def make(**how: Any) -> World:
            return stack.enter_context(world_on(database, **how))

        yield make
