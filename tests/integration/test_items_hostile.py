"""One item of a batch that misuses its session or connection: the others are done all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Item

from ..support.plays import Play, named
from ..support.tasks import GivenUp, Tally, records, work_to_the_end
from ..support.worlds import World


@pytest.fixture(scope="module")
def shared(module_world: World) -> Play:
    module_world.database.query("CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    module_world.cron.job("digest")(lambda run: None)
    return Play(module_world)


@pytest.fixture
def play(shared: Play) -> Play:
    return shared.anew()


@pytest.fixture
def world(play: Play) -> World:
    return play.world


Misuse = Callable[[World, Item], object]
OTHERS = named([0, 1, 3, 4])


def work_off(play: Play, misuse: Misuse) -> Tally | GivenUp:
    """Work off a batch of five, of which item 2 does *misuse*."""
    row = play.deferred(lambda item, n: misuse(play.world, item) if n == 2 else None, 5)
    return work_to_the_end(play.world, row)


def remove_the_session(world: World, _: Item) -> None:
    world.db.session.remove()


def break_a_deferred_constraint(_: World, item: Item) -> None:
    item.session.execute(text("INSERT INTO late VALUES (1), (1)"))


def close_the_connection(_: World, item: Item) -> None:
    item.session.connection().close()


def close_the_drivers_connection(_: World, item: Item) -> None:
    driver: Any = item.session.connection().connection.driver_connection
    driver.close()


def run_a_job(world: World, _: Item) -> None:
    world.cron.run("digest")


@pytest.mark.parametrize(
    "misuse",
    [
        remove_the_session,
        break_a_deferred_constraint,
        close_the_connection,
        close_the_drivers_connection,
        run_a_job,
    ],
)
def test_the_others_are_done_and_it_has_failed(world: World, play: Play, misuse: Misuse) -> None:
    ended = work_off(play, misuse)
    assert isinstance(ended, GivenUp)
    assert world.notes == OTHERS
    assert sorted(records(world, "state")) == ["done"] * 4 + ["failed"]
    with world.app.app_context():
        assert world.db.engine.pool.checkedout() == 0


def test_one_that_closes_its_session_has_undone_its_own_alone(world: World, play: Play) -> None:
    ended = work_off(play, lambda _, item: item.session.close())
    assert isinstance(ended, Tally)
    assert world.notes == OTHERS
    assert set(records(world)) == {("done", 1, False)}


def test_one_whose_backend_is_ended_is_done_again_with_the_others(world: World, play: Play) -> None:
    killed: list[object] = []

    def end_the_backend(world: World, item: Item) -> None:
        if not killed:
            killed.append(item.session.scalar(text("SELECT pg_backend_pid()")))
            world.database.query("SELECT pg_terminate_backend(%s)", killed[0])
            item.session.execute(text("SELECT 1"))

    ended = work_off(play, end_the_backend)
    assert isinstance(ended, Tally)
    assert world.notes == named(range(5))
    assert set(records(world, "state")) == {"done"}
