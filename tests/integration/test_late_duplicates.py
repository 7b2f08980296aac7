"""A duplicate of a slot that is done is answered before the lock is asked for."""

from __future__ import annotations

import pytest
from sqlalchemy import event

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.outcomes import LONG, reason_of, value_of
from ..support.worlds import World


@pytest.fixture
def world(world: World) -> World:
    """A world whose job has run."""
    world.cron.job("digest", every=LONG)(world.mark)
    value_of(world.run("digest"))
    return world


def test_it_is_told_so_though_somebody_holds_the_lock(world: World, database: Database) -> None:
    with database.connect() as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))")
        assert reason_of(world.run("digest")) is Reason.ALREADY_RAN


def test_it_takes_no_lock_that_a_new_slot_would_find_taken(
    world: World, database: Database
) -> None:
    held: list[int] = []
    with world.app.app_context():
        event.listen(
            world.db.engine,
            "after_cursor_execute",
            lambda *_: held.append(database.advisory_locks()),
        )
        assert reason_of(world.cron.run("digest")) is Reason.ALREADY_RAN
    assert set(held) == {0}
