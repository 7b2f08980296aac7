"""A lock on a server that takes no writes excludes nobody, so nothing runs there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Ran
from flask_cronlock.exceptions import NotPrimary

from ..support.databases import fresh_database, temporary
from ..support.worlds import World, world_on


def refuses(world: World, ran: list[str]) -> None:
    with pytest.raises(NotPrimary, match="point SQLALCHEMY_DATABASE_URI at the primary"):
        world.run("digest")
    with world.app.app_context(), pytest.raises(NotPrimary):
        world.cron.with_lock("cache", lambda _: ran.append("cache"))
    response = world.post("digest")
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert ran == []


def with_digest(world: World) -> tuple[World, list[str]]:
    ran: list[str] = []

    @world.cron.job("digest", every="1d")
    def digest() -> None:
        ran.append("digest")

    return world, ran


def test_a_hot_standby_is_refused_until_it_is_the_primary() -> None:
    with (
        temporary() as server,
        fresh_database(server) as database,
        world_on(database) as made,
    ):
        world, ran = with_digest(made)
        signal = server.data / "standby.signal"
        server.stop()
        signal.touch()
        server.run_as.give(signal)
        server.start()
        assert database.value("SELECT pg_is_in_recovery()")
        refuses(world, ran)

        database.query("SELECT pg_promote()")
        assert isinstance(world.run("digest"), Ran)


def test_a_read_only_session_is_refused(make_world: Callable[..., World]) -> None:
    made = make_world()
    made.probe.execute(
        f'ALTER DATABASE "{made.database.name}" SET default_transaction_read_only = on'
    )
    with made.app.app_context():
        made.db.engine.dispose()
    refuses(*with_digest(made))
