"""What the endpoint answers when no run is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..support.databases import Database, fresh_database, temporary
from ..support.endpoint import body_of, job, unreachable
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database


def assert_unavailable(response: Any, words: str) -> None:
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert body_of(response) == {"job": "x", "error": words}


def test_a_database_that_cannot_be_reached_is_unavailable(database: Database) -> None:
    with unreachable() as url, bare_world(database, url=url) as world:
        job(world)

        assert_unavailable(world.post("x"), "Database unavailable")


def test_a_database_that_is_not_there_is_unavailable(database: Database) -> None:
    with bare_world(database, url=database.server.url("no_such_database")) as world:
        job(world)

        assert_unavailable(world.post("x"), "Database unavailable")


def test_a_server_that_was_stopped_is_unavailable_until_it_is_back() -> None:
    with temporary() as server, fresh_database(server) as database, bare_world(database) as world:
        world.create_tables()
        world.cron.job("x")(lambda: None)
        assert world.post("x").status_code == 200
        server.stop()
        try:
            stopped = world.post("x")
        finally:
            server.start()

        assert_unavailable(stopped, "Database unavailable")
        assert world.post("x").status_code == 200


def test_a_standby_or_read_only_server_is_unavailable(make_world: Callable[..., World]) -> None:
    world = make_world()
    read_only = {"connect_args": {"options": "-c default_transaction_read_only=on"}}
    with bare_world(world.database, engine_options=read_only) as reader:
        job(reader)

        assert_unavailable(reader.post("x"), "Database unavailable")


def test_a_pool_without_a_free_connection_is_unavailable(
    make_world: Callable[..., World],
) -> None:
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1}
    world = make_world(engine_options=options)
    job(world)
    with world.app.app_context():
        engine = world.db.engine
    with engine.connect():
        assert_unavailable(world.post("x"), "No connection free")

    assert body_of(world.post("x"))["outcome"] == "ran"


def test_a_database_without_the_tables_is_unavailable(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with fresh_database(database.server) as bare, bare_world(bare) as world:
        job(world)

        assert_unavailable(world.post("x"), "Tables missing")

    assert "flask cron init-db" in caplog.text


@pytest.mark.parametrize("mode", ["ACCESS EXCLUSIVE", "SHARE"], ids=["column", "index"])
def test_tables_that_a_migration_has_locked_are_unavailable(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """An index keeps only writes waiting, the claim for one; nobody is running then."""
    world = make_world()
    job(world)
    with world.database.connect() as migration, migration.transaction():
        migration.execute(f"LOCK TABLE cronlock_run IN {mode} MODE")
        assert_unavailable(world.post("x"), "Database unavailable")

    assert "TablesLocked" in caplog.text
    assert "by a migration for example" in caplog.text
    assert body_of(world.post("x"))["outcome"] == "ran"


@pytest.mark.parametrize(
    "header", [None, "Bearer ", "Bearer None", "Bearer null", "Bearer undefined", 'Bearer ""']
)
def test_without_a_secret_nothing_runs(
    make_world: Callable[..., World],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    header: str | None,
) -> None:
    monkeypatch.delenv("CRON_SECRET", raising=False)
    world = make_world(CRONLOCK_SECRET=None)
    job(world)
    caplog.clear()

    headers = {"Authorization": header} if header else {}
    response = world.app.test_client().post("/api/cron/x", headers=headers)

    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert body_of(response) == {"error": "No secret configured"}
    assert world.marks == 0
    (record,) = [record for record in caplog.records if record.name == "flask_cronlock"]
    assert "set CRONLOCK_SECRET or CRON_SECRET" in record.getMessage()


def test_a_database_that_is_not_postgresql_is_a_misconfiguration(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with bare_world(database, url="sqlite://") as world:
        job(world)

        response = world.post("x")

    assert response.status_code == 500
    assert body_of(response) == {"job": "x", "error": "Misconfigured"}
    assert "postgresql+psycopg://" in caplog.text
