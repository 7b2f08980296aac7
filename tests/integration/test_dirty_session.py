"""A request whose session is in use before the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from ..support.outcomes import LONG
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    one = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 2}
    return make_world(engine_options=one)


def test_a_session_that_has_only_read_gives_its_connection_up(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))

    @world.app.before_request
    def read() -> None:
        world.db.session.execute(text("SELECT 1"))

    answer = world.post("digest")
    assert (answer.status_code, answer.json["outcome"]) == (200, "ran")
    assert world.notes == ["sent"]


def write(world: World) -> None:
    world.note("of the request's")


def add(world: World) -> None:
    class Audit(world.db.Model):  # type: ignore[name-defined, misc]
        id = world.db.Column(world.db.Integer, primary_key=True)

    world.db.session.add(Audit())


@pytest.mark.parametrize("deed", [write, add])
def test_a_session_that_holds_writes_is_refused_and_left_as_it_is(
    world: World, deed: Callable[[World], None]
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    left = []

    @world.app.before_request
    def use() -> None:
        deed(world)

    @world.app.after_request
    def look(response: object) -> object:
        left.append(world.db.session().in_transaction() or bool(world.db.session.new))
        return response

    answer = world.post("digest")
    assert (answer.status_code, answer.json["error"]) == (500, "Session holds uncommitted writes")
    assert left == [True]
    assert world.marks == 0
    assert world.notes == []
