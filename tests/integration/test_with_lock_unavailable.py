"""Work under a lock that could not be begun: the error names the cure, and nothing was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from flask_cronlock.exceptions import Interrupted, NoFreeConnection, RightsMissing, Unavailable

from ..support.commands import stranger_to
from ..support.databases import Database, Server
from ..support.locking import held, locked
from ..support.outcomes import value_of
from ..support.pgbouncer import pgbouncer_before
from ..support.processes import wait_until
from ..support.worlds import World, bare_world

CANCEL_WAIT = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'
"""


@contextmanager
def waiting(world: World, holder: World) -> Iterator[Future[Any]]:
    """Wait for a lock that *holder* has until the end of the block."""
    with held(holder, "cache"), ThreadPoolExecutor(1) as pool:
        yield pool.submit(locked, world, "cache", lambda _: world.mark(), wait="60s")


def refusal(waiter: Future[Any]) -> BaseException:
    error = waiter.exception(60)
    assert isinstance(error, Unavailable), error
    return error


def test_a_wait_that_an_operator_cancelled_is_interrupted(world: World) -> None:
    with waiting(world, world) as waiter:
        wait_until(lambda: world.database.query(CANCEL_WAIT))
        error = refusal(waiter)

    assert type(error) is Interrupted
    assert "operator" in str(error)
    assert isinstance(error.__cause__, DBAPIError)
    assert world.marks == 0
    value_of(locked(world, "cache", lambda _: None))


def test_a_wait_that_outlives_the_poolers_limit_names_it(
    postgres: Server, database: Database, make_world: Callable[..., World]
) -> None:
    with pgbouncer_before(postgres, query_timeout=1) as pooler:
        world = make_world(url=pooler.url(database))
        with waiting(world, make_world()) as waiter:
            error = refusal(waiter)

    assert type(error) is Interrupted
    assert "query_timeout" in str(error)
    assert world.marks == 0


def test_a_pooler_without_a_free_backend_is_named(
    postgres: Server, database: Database, make_world: Callable[..., World]
) -> None:
    limits = {"default_pool_size": 1, "query_wait_timeout": 1}
    with pgbouncer_before(postgres, **limits) as pooler:
        world = make_world(url=pooler.url(database))
        with held(world, "cache"), pytest.raises(NoFreeConnection) as refused:
            locked(world, "other", lambda _: world.mark())

    assert "default_pool_size" in str(refused.value)
    assert world.marks == 0


@pytest.mark.parametrize(
    ("function", "wait"),
    [("pg_try_advisory_xact_lock(bigint)", None), ("pg_advisory_xact_lock(bigint)", "60s")],
)
def test_a_role_that_may_not_lock_is_told_what_to_grant(
    world: World, database: Database, function: str, wait: str | None
) -> None:
    database.query(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    with ExitStack() as stack:
        url = stack.enter_context(stranger_to(database))
        stranger = stack.enter_context(bare_world(database, url=url))
        stack.enter_context(held(world, "cache"))
        with pytest.raises(RightsMissing) as refused:
            locked(stranger, "cache", lambda _: world.mark(), wait=wait)

    assert "EXECUTE" in str(refused.value)
    assert world.marks == 0


def refuse_right(world: World) -> None:
    world.db.session.execute(text("SET LOCAL ROLE pg_monitor"))
    world.note("gone")


def miss_a_table(world: World) -> None:
    world.db.session.execute(text("SELECT 1 FROM no_such_table"))


def wait_for_a_table(world: World) -> None:
    world.db.session.execute(text("SET LOCAL lock_timeout = '50ms'"))
    with world.database.connect() as other, other.transaction():
        other.execute("LOCK TABLE note")
        world.note("gone")


def sleep_too_long(world: World) -> None:
    world.db.session.execute(text("SET LOCAL statement_timeout = '50ms'"))
    world.db.session.execute(text("SELECT pg_sleep(60)"))


@pytest.mark.parametrize("wait", [None, "60s"])
@pytest.mark.parametrize("deed", [refuse_right, miss_a_table, wait_for_a_table, sleep_too_long])
def test_what_the_work_itself_meets_is_no_want_of_ours(
    world: World, deed: Callable[[World], None], wait: str | None
) -> None:
    with pytest.raises(DBAPIError):
        locked(world, "cache", lambda _: deed(world), wait=wait)
    assert world.notes == []
