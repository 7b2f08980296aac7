"""A run leaves no prepared statement: behind a pooler its name could belong to another client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from flask_cronlock import Ran

from ..support.outcomes import LONG
from ..support.worlds import World

OFTEN = 12
"""More often than psycopg runs a statement before it prepares it."""


def test_a_connection_is_given_back_with_nothing_prepared(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 0})
    world.cron.job("digest", every=LONG)(lambda: world.note("written"))

    for _ in range(OFTEN):
        # Each of them commits; a rollback would make psycopg forget what it prepared.
        assert isinstance(world.run("digest", force=True), Ran)

    with world.app.app_context(), world.db.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM pg_prepared_statements")) == 0


@pytest.mark.parametrize("route", ["pgbouncer"], indirect=True)
def test_clients_that_take_turns_on_one_backend_do_not_meet_in_a_name(
    make_world: Callable[..., World], route: str
) -> None:
    worlds = [make_world(url=route), make_world(url=route)]
    for world in worlds:
        world.cron.job("digest", every=LONG)(lambda world=world: world.note("written"))

    for _ in range(OFTEN):
        for world in worlds:
            assert isinstance(world.run("digest", force=True), Ran)
