"""A forked child neither uses nor closes what its parent holds."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Ran
from flask_cronlock.exceptions import LockLost

from ..support.forks import exit_code, forked
from ..support.worlds import World

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

WHO = text("SELECT pg_backend_pid()")
POOLS = {"one": {"pool_size": 1, "max_overflow": 0}, "five": {"pool_size": 5}}


def with_jobs(world: World) -> World:
    @world.cron.job("where")
    def where() -> int:
        backend = int(world.db.session.scalar(WHO))
        world.note(str(backend))
        return backend

    return world


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return with_jobs(make_world(engine_options=POOLS["one"]))


def run_until_ran(world: World) -> int:
    for _ in range(1000):
        if isinstance(outcome := world.run("where"), Ran):
            return int(outcome.value)
    raise AssertionError(f"never got the lock: {outcome}")


@pytest.mark.parametrize("pool", POOLS)
def test_children_run_on_connections_of_their_own(
    make_world: Callable[..., World], route: str, pool: str
) -> None:
    world = with_jobs(make_world(url=route, engine_options=POOLS[pool]))
    parents = run_until_ran(world)

    def run_thrice() -> None:
        for _ in range(3):
            run_until_ran(world)

    for check in [forked(run_thrice) for _ in range(4)]:
        check()

    again = run_until_ran(world)
    assert len(world.notes) == 14
    assert world.database.advisory_locks() == 0
    if route == world.database.url:
        assert again == parents
        assert len(set(world.notes)) == 5


def test_a_transaction_open_at_the_fork_outlives_the_child(world: World) -> None:
    with world.app.app_context(), world.db.engine.connect() as connection:
        connection.execute(text("INSERT INTO note VALUES ('of the parent')"))
        before = connection.scalar(WHO)
        forked(lambda: check_ran(world))()
        assert connection.scalar(WHO) == before
        connection.commit()
    assert "of the parent" in world.notes


def check_ran(world: World) -> None:
    assert isinstance(world.run("where"), Ran)


@pytest.mark.parametrize(
    ("does", "raises"),
    [("query", LockLost), ("return", LockLost), ("raise", ValueError), ("exit", SystemExit)],
)
def test_a_child_of_a_running_job_cannot_touch_its_transaction(
    world: World, does: str, raises: type[BaseException]
) -> None:
    """Whatever the child does, it is refused, and the parent's run is kept."""
    parent = os.getpid()
    codes: list[int] = []

    @world.cron.job("forking", every="1d")
    def forking() -> str:
        world.note("before the fork")
        if child := os.fork():
            codes.append(exit_code(child))
            world.note("after the child's end")
            return "of the parent"
        if does == "query":
            world.db.session.execute(text("SELECT 1"))
        if does == "raise":
            raise ValueError("of the child")
        if does == "exit":
            sys.exit(3)
        return "of the child"

    try:
        outcome = world.run("forking")
    except BaseException as error:
        if os.getpid() == parent:
            raise
        gc.collect()
        os._exit(0 if type(error) is raises else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)

    assert codes == [0]
    assert isinstance(outcome, Ran), outcome
    assert outcome.value == "of the parent"
    assert world.notes == ["after the child's end", "before the fork"]
    assert [state for _, _, state in world.runs()] == ["done"]
    assert world.attempts() == []


def test_a_child_of_a_job_that_reads_a_stream_does_not_end_it(world: World) -> None:
    parent = os.getpid()
    streams: list[Iterator[tuple[int]]] = []

    @world.cron.job("reading", every="1d")
    def reading() -> int:
        driver: Any = world.db.session.connection().connection.driver_connection
        streams.append(iter(driver.cursor().stream("SELECT generate_series(1, 100000)")))
        next(streams[0])
        if child := os.fork():
            assert exit_code(child) == 0
            return sum(1 for _ in streams[0])
        raise ValueError("of the child")

    try:
        outcome = world.run("reading")
    except BaseException as error:
        if os.getpid() == parent:
            raise
        # Not to its end: psycopg's own generators would read what is the parent's.
        os._exit(0 if isinstance(error, ValueError) else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)

    assert isinstance(outcome, Ran), outcome
    assert outcome.value == 99_999


def test_a_child_of_a_running_job_may_use_a_connection_of_its_own(world: World) -> None:
    @world.cron.job("parallel", every="1d")
    def parallel() -> None:
        world.note("of the job")

        def work() -> None:
            with world.db.engine.begin() as connection:
                connection.execute(text("INSERT INTO note VALUES ('of the child')"))

        forked(work)()

    assert isinstance(world.run("parallel"), Ran)
    assert world.notes == ["of the child", "of the job"]
