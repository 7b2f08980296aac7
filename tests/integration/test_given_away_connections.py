"""A job gives the run's connection to the pool, and so to somebody else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.pool import NullPool, QueuePool

from flask_cronlock.exceptions import TransactionEnded

from ..support.locking import locked
from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World


def test_what_its_new_holder_does_is_not_undone_when_the_run_ends(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 1})
    with world.app.app_context():
        engine = world.db.engine
    taken: list[Connection] = []

    def take() -> None:
        connection = engine.connect()
        connection.execute(text("INSERT INTO note VALUES ('of its new holder')"))
        taken.append(connection)

    with ThreadPoolExecutor(1) as other:

        @world.cron.job("digest", every=LONG)
        def digest() -> None:
            world.db.session.connection().connection.close()
            other.submit(take).result()

        error_of(world.run("digest"))

    taken[0].commit()
    taken[0].close()
    assert world.notes == ["of its new holder"]


@pytest.mark.parametrize("speaks_again", [True, False], ids=["speaks again", "just returns"])
@pytest.mark.parametrize("pool", [QueuePool, NullPool])
def test_the_job_is_told_what_to_do_and_the_slot_is_run_again(
    make_world: Callable[..., World], pool: type, speaks_again: bool
) -> None:
    world = make_world(engine_options={"poolclass": pool})
    careless = True

    def work() -> None:
        world.note("kept")
        if careless:
            world.db.session.connection().connection.close()
            if speaks_again:
                world.note("gone")

    world.cron.job("digest", every=LONG)(work)

    error = error_of(world.run("digest"))
    assert type(error) is TransactionEnded
    assert "use db.session.commit()" in str(error)
    with pytest.raises(TransactionEnded):
        locked(world, "cache", lambda _: work())
    assert world.notes == []
    careless = False
    value_of(world.run("digest"))
    assert world.notes == ["kept"]
