"""The pool holds connections that died since they were last used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import event

from flask_cronlock import Ran
from flask_cronlock.exceptions import DatabaseUnreachable

from ..support.databases import Database, Server, fresh_database, temporary
from ..support.pgbouncer import pgbouncer_before
from ..support.worlds import World, world_on

END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def give_it_a_job(world: World) -> World:
    @world.cron.job("warm-cache")
    def warm_cache() -> None:
        world.mark()

    return world


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return give_it_a_job(make_world(engine_options={"pool_size": 1, "max_overflow": 0}))


def end_backends(world: World) -> None:
    """End every backend of the world's pool, and the probe's."""
    world.database.query(END_ALL)
    world.probe.close()
    world.probe = world.database.connect()


def test_a_backend_ended_between_two_runs_is_replaced(world: World) -> None:
    assert isinstance(world.run("warm-cache"), Ran)
    end_backends(world)
    assert isinstance(world.run("warm-cache"), Ran)
    assert world.marks == 2


def test_a_lock_after_a_backend_was_ended_is_taken(world: World) -> None:
    with world.app.app_context():
        assert isinstance(world.cron.with_lock("cache", lambda _: 1), Ran)
        end_backends(world)
        assert isinstance(world.cron.with_lock("cache", lambda _: 1), Ran)


def test_a_connection_that_somebody_closed_is_replaced(world: World) -> None:
    with world.app.app_context(), world.db.engine.connect() as connection:
        driver = connection.connection.driver_connection
    driver.close()
    assert isinstance(world.run("warm-cache"), Ran)
    assert isinstance(world.run("warm-cache"), Ran)


def test_a_pooler_restarted_between_two_runs_goes_unnoticed(
    postgres: Server, database: Database
) -> None:
    with (
        pgbouncer_before(postgres) as pooler,
        world_on(database, url=pooler.url(database)) as world,
    ):
        give_it_a_job(world)
        assert isinstance(world.run("warm-cache"), Ran)
        pooler.restart()
        assert isinstance(world.run("warm-cache"), Ran)
    assert database.advisory_locks() == 0


def test_a_connection_is_replaced_once_and_no_more(world: World) -> None:
    """Each new connection's backend is ended before the first statement reaches it."""
    connected: list[int] = []
    with world.app.app_context():

        @event.listens_for(world.db.engine, "checkout")
        def end(driver: psycopg.Connection[object], *_: object) -> None:
            connected.append(driver.info.backend_pid)
            world.probe.execute("SELECT pg_terminate_backend(%s, 5000)", [connected[-1]])

        with pytest.raises(DatabaseUnreachable):
            world.cron.run("warm-cache")
        event.remove(world.db.engine, "checkout", end)
    assert len(connected) == 2
    assert world.marks == 0
    assert isinstance(world.run("warm-cache"), Ran)


@pytest.fixture
def own_server() -> Iterator[Server]:
    with temporary() as server:
        yield server


def test_a_server_that_is_down_is_unreachable_and_found_again(own_server: Server) -> None:
    with fresh_database(own_server) as database, world_on(database) as world:
        give_it_a_job(world)
        assert isinstance(world.run("warm-cache"), Ran)
        own_server.stop()
        with pytest.raises(DatabaseUnreachable):
            world.run("warm-cache")
        response = world.post("warm-cache")
        assert response.status_code == 503
        assert response.headers["Retry-After"]

        own_server.start()
        world.probe.close()
        world.probe = database.connect()
        assert isinstance(world.run("warm-cache"), Ran)
