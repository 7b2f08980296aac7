"""A caller with a savepoint open: a run neither joins it nor ends more than it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from flask_cronlock import Ran

from ..support.outcomes import LONG
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world(engine_options={"pool_size": 2, "max_overflow": 0, "pool_timeout": 5})
    world.cron.job("digest", every=LONG)(lambda: world.note("of the run"))
    return world


def test_what_a_run_keeps_outlives_the_callers_rollback(world: World) -> None:
    with world.app.app_context():
        world.note("of the caller")
        savepoint = world.db.session.begin_nested()
        world.note("undone by the caller")
        assert isinstance(world.cron.run("digest"), Ran)
        assert isinstance(world.cron.with_lock("cache", lambda _: world.note("under a lock")), Ran)
        assert savepoint.is_active
        savepoint.rollback()
        world.db.session.commit()

    assert world.notes == ["of the caller", "of the run", "under a lock"]


def test_a_request_with_a_savepoint_that_only_read_is_served(world: World) -> None:
    @world.app.before_request
    def read() -> None:
        world.db.session.begin_nested()
        world.db.session.execute(text("SELECT 1"))

    assert world.post("digest").json["outcome"] == "ran"
    assert world.notes == ["of the run"]


def test_a_request_with_a_write_in_a_savepoint_is_refused_and_keeps_it(world: World) -> None:
    @world.app.before_request
    def write() -> None:
        world.db.session.begin_nested()
        world.note("of the request")

    @world.app.after_request
    def keep(response: object) -> object:
        world.db.session.commit()
        return response

    answer = world.post("digest")

    assert answer.json["error"] == "Session holds uncommitted writes"
    assert world.notes == ["of the request"]
