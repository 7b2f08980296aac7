"""What work under a bare lock writes on a connection of its own is kept, with a warning."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from ..support.apart import in_a_context, on_a_connection
from ..support.outcomes import value_of
from ..support.worlds import World


@pytest.fixture
def world(entered_world: World) -> World:
    return entered_world


def test_it_may_make_the_tables(world: World) -> None:
    world.db.Table("made", world.db.metadata, world.db.Column("id", world.db.Integer))

    def make() -> None:
        world.db.create_all()
        assert world.database.advisory_locks() == 1

    value_of(world.cron.with_lock("migrate", lambda _: make()))
    value_of(world.cron.exclusive("migrate")(world.db.drop_all)())


@pytest.mark.parametrize("write", [in_a_context, on_a_connection])
def test_it_is_kept_although_the_work_fails(
    world: World, caplog: pytest.LogCaptureFixture, write: Callable[[World], None]
) -> None:
    def work() -> None:
        world.note("inside")
        write(world)
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        world.cron.with_lock("cache", lambda _: work())

    assert world.notes == ["outside"]
    assert world.database.advisory_locks() == 0
    told = [r for r in caplog.records if r.__dict__.get("action") == "second_transaction"]
    assert {r.levelno for r in told} == {logging.WARNING}
    assert all("db.session" in r.getMessage() for r in told)
