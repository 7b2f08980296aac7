"""Work under a lock, without a slot: `cron.with_lock`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from flask_cronlock import Reason, Skipped
from flask_cronlock.exceptions import (
    JobTimeout,
    LockLost,
    RegistrationError,
    SessionReplaced,
    TransactionEnded,
)

from ..support.databases import Database
from ..support.locking import held, locked, thing_class
from ..support.outcomes import elsewhere, reason_of, value_of
from ..support.sites import BRISK
from ..support.worlds import World, bare_world


@pytest.fixture
def world(entered_world: World) -> World:
    return entered_world


def test_work_is_handed_the_session_and_its_value_comes_back(world: World) -> None:
    def work(session: Session) -> int:
        assert session is world.db.session()
        world.note("written")
        return 3

    assert value_of(world.cron.with_lock("cache", work)) == 3
    assert world.notes == ["written"]
    assert world.database.advisory_locks() == 0


def test_while_it_is_held_another_is_skipped_and_told_by_whom(world: World) -> None:
    with held(world, "cache"):
        outcome = locked(world, "cache", lambda session: world.mark())
        value_of(locked(world, "other", lambda session: world.mark()))

    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert outcome.held_by == outcome.instance
    assert outcome.held_since is not None
    assert world.marks == 1
    value_of(locked(world, "cache", lambda session: None))


@pytest.mark.parametrize("wait", ["30s", 30, timedelta(seconds=30)])
def test_one_that_waits_gets_the_lock_when_it_is_freed(world: World, wait: Any) -> None:
    with held(world, "cache") as end:
        threading.Timer(0.2, end.set).start()
        outcome = locked(world, "cache", lambda session: world.note("waited"), wait=wait)

    value_of(outcome)
    assert world.notes == ["waited"]


def test_one_that_waited_in_vain_is_skipped(world: World) -> None:
    with held(world, "cache"):
        outcome = locked(world, "cache", lambda session: world.mark(), wait=0.2)

    assert reason_of(outcome) is Reason.ALREADY_RUNNING
    assert outcome.held_by is not None
    assert world.marks == 0


def test_the_timeout_counts_from_the_lock_and_not_from_the_wait(world: World) -> None:
    def work(session: Session) -> None:
        session.execute(text("SELECT pg_sleep(1.5)"))

    with held(world, "cache") as end:
        threading.Timer(1.5, end.set).start()
        value_of(locked(world, "cache", work, timeout=2.8, wait="30s"))


def test_the_wait_that_was_not_needed_is_not_added_to_the_timeout(world: World) -> None:
    def work(session: Session) -> None:
        session.execute(text("SELECT pg_sleep(9)"))

    with held(world, "cache") as end:
        threading.Timer(0.1, end.set).start()
        with pytest.raises(JobTimeout):
            locked(world, "cache", work, timeout=BRISK, wait="20s")


def test_work_that_takes_too_long_is_ended(world: World) -> None:
    def work(session: Session) -> None:
        world.note("gone")
        session.execute(text("SELECT pg_sleep(30)"))

    with pytest.raises(JobTimeout):
        world.cron.with_lock("cache", work, timeout=BRISK)
    assert world.notes == []


def test_the_works_own_lock_timeout_is_the_databases(world: World) -> None:
    def look(session: Session) -> Any:
        return session.execute(text("SHOW lock_timeout")).scalar()

    default = world.database.value("SHOW lock_timeout")
    assert value_of(world.cron.with_lock("cache", look)) == default
    assert value_of(world.cron.with_lock("cache", look, wait="3s")) == default


class Final(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize("error", [ValueError("as asked"), SystemExit(3), Final()])
def test_it_raises_what_the_work_raises_and_nothing_is_kept(
    world: World, error: BaseException
) -> None:
    def work(session: Session) -> None:
        world.note("gone")
        session.commit()
        raise error

    with pytest.raises(type(error)) as raised:
        world.cron.with_lock("cache", work)

    assert raised.value is error
    assert world.notes == []
    assert world.database.advisory_locks() == 0


def test_an_sql_error_is_raised_as_it_is(world: World) -> None:
    with pytest.raises(SQLAlchemyError, match="division by zero"):
        world.cron.with_lock("cache", lambda session: session.execute(text("SELECT 1/0")))


def swallow(world: World, session: Session) -> None:
    with contextlib.suppress(SQLAlchemyError):
        session.execute(text("SELECT 1/0"))


def swallow_in_flush(world: World, session: Session) -> None:
    columns = "id int PRIMARY KEY, name text, owner_id int"
    session.execute(text(f"CREATE TEMP TABLE thing ({columns}) ON COMMIT DROP"))
    thing = thing_class(world)
    session.add(thing(id=1))
    session.flush()
    session.expunge_all()
    session.add(thing(id=1))
    with contextlib.suppress(IntegrityError):
        session.flush()


def roll_back(world: World, session: Session) -> None:
    session.execute(text("ROLLBACK"))


def commit(world: World, session: Session) -> None:
    session.execute(text("COMMIT"))


def commit_and_begin(world: World, session: Session) -> None:
    session.execute(text("COMMIT"))
    session.execute(text("BEGIN"))
    session.execute(text("SAVEPOINT sa_savepoint_1"))


def be_killed(world: World, session: Session) -> None:
    pid = session.execute(text("SELECT pg_backend_pid()")).scalar()
    world.database.query("SELECT pg_terminate_backend(%s)", pid)


@pytest.mark.parametrize(
    ("deed", "error"),
    [
        (swallow, LockLost),
        (swallow_in_flush, LockLost),
        (roll_back, TransactionEnded),
        (commit, TransactionEnded),
        (commit_and_begin, TransactionEnded),
        (be_killed, LockLost),
        (lambda world, session: session.connection().commit(), TransactionEnded),
        (lambda world, session: session.connection().close(), TransactionEnded),
        (lambda world, session: world.db.session.remove(), SessionReplaced),
        (lambda world, session: (session.connection(), session.invalidate()), LockLost),
    ],
)
def test_a_lost_or_aborted_transaction_raises(
    world: World, deed: Callable[[World, Session], Any], error: type[LockLost]
) -> None:
    with pytest.raises(error) as raised:
        world.cron.with_lock("cache", lambda session: deed(world, session))

    assert type(raised.value) is error
    assert world.database.advisory_locks() == 0
    value_of(world.cron.with_lock("cache", lambda session: world.note("after")))
    assert world.notes == ["after"]


async def coroutine(session: Session) -> None: ...


def generator(session: Session) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("work", [coroutine, generator])
def test_work_that_would_be_done_after_the_lock_is_refused(world: World, work: Any) -> None:
    with pytest.raises(RegistrationError, match=r"asyncio\.run|instead of yielding"):
        world.cron.with_lock("cache", work)


def test_a_coroutine_is_no_value(world: World) -> None:
    with pytest.raises(TypeError, match=r"asyncio\.run"):
        world.cron.with_lock("cache", lambda session: coroutine(session))


def test_it_needs_no_tables_of_ours(database: Database) -> None:
    with bare_world(database) as world:
        assert value_of(locked(world, "cache", lambda session: 3)) == 3
        assert database.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []


def test_a_job_and_a_lock_of_its_name_keep_each_other_out(world: World) -> None:
    inside: list[Any] = []

    @world.cron.job("digest")
    def digest() -> None:
        inside.append(elsewhere(lambda: locked(world, "digest", lambda session: None)))

    value_of(world.run("digest"))
    assert reason_of(inside[0]) is Reason.ALREADY_RUNNING

    value_of(
        world.cron.with_lock(
            "digest", lambda session: inside.append(elsewhere(lambda: world.run("digest")))
        )
    )
    assert reason_of(inside[1]) is Reason.ALREADY_RUNNING
    world.cron.jobs._jobs.clear()
