"""Sites: the servers and ways on which promises about time and kills are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from flask_cronlock import Failed, Ran

from ..support.databases import Database, Server, fresh_database, temporary
from ..support.pgbouncer import PgBouncer
from ..support.programs import find_old_postgres
from ..support.sites import Site
from ..support.worlds import World, world_on


@pytest.fixture(scope="session")
def old_postgres() -> Iterator[Server]:
    with temporary(bin=find_old_postgres()) as server:
        yield server


@pytest.fixture(params=["direct", "pgbouncer", "before 17"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    if request.param == "before 17":
        with fresh_database(request.getfixturevalue("old_postgres")) as old:
            yield Site(old, old.url, whole=False)
        return
    database: Database = request.getfixturevalue("database")
    if request.param == "direct":
        yield Site(database, database.url)
        return
    pooler: PgBouncer = request.getfixturevalue("pgbouncer")
    yield Site(database, pooler.url(database))


@pytest.fixture
def site_world(site: Site) -> Iterator[World]:
    with world_on(site.database, url=site.url) as made:
        yield made


@pytest.fixture
def next_hit(site_world: World) -> Callable[[str], str]:
    """Run a job of ``jobs_app`` in this process, without its delays; return what became of it."""

    def hit(name: str) -> str:
        if name not in site_world.cron.jobs:

            @site_world.cron.job(name, every="1d")
            def run_now() -> None:
                site_world.mark()
                site_world.note(f"next {name}")

        outcome = site_world.run(name)
        if isinstance(outcome, Failed):
            raise outcome.error
        return "ran" if isinstance(outcome, Ran) else outcome.reason

    return hit
