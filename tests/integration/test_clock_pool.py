"""How many connections a clock needs, and what it says to a pool that has fewer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import NullPool, event

from flask_cronlock.exceptions import ConfigError

from ..support.clocks import clock_of, engine_of, has_run, slots_of, ticking, without_gap
from ..support.commands import cron, fails
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 2, "max_overflow": 0, "pool_timeout": 1},
        {"pool_size": 1, "max_overflow": 1, "pool_timeout": 1},
        {"poolclass": NullPool},
        {"max_overflow": -1},
    ],
    ids=str,
)
def test_a_connection_to_look_and_one_to_run_are_enough(
    make_world: Callable[..., World], options: dict[str, object]
) -> None:
    world = make_world(engine_options=options)
    for name in ("a", "b"):
        world.cron.job(name, every="1s", catch_up="all")(world.mark)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "a", 2) and has_run(world, "b", 2))
    assert not clocks.log.troubles()
    assert without_gap(slots_of(world, "a", "done"))


def test_one_connection_is_too_few(make_world: Callable[..., World]) -> None:
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 0})
    with pytest.raises(ConfigError, match=r"needs 2 connections.*the pool has 1.*pool_size"):
        clock_of(world)
    result = cron(world, "clock")
    fails(result, 1, "raise pool_size or max_overflow in SQLALCHEMY_ENGINE_OPTIONS")


def test_more_workers_than_connections_are_refused(world: World) -> None:
    fails(cron(world, "clock", "--workers", "20"), 1, "needs 21 connections")
    fails(cron(world, "clock", "--workers", "0"), 1, "at least one worker")


def test_a_grace_that_is_no_duration_is_refused(world: World) -> None:
    fails(cron(world, "clock", "--grace", "soon"), 1, "grace")


def test_no_connection_is_taken_before_the_clock_runs(world: World) -> None:
    taken: list[object] = []
    event.listen(engine_of(world), "checkout", lambda *_: taken.append(1))
    clock_of(world)
    assert taken == []
