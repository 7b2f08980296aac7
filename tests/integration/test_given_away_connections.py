"""A job gives the run's connection to the pool, and so to somebody else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Connection, text

from ..support.outcomes import LONG, error_of
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
