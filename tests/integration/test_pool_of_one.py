"""One connection is enough for everything: nothing ever waits for a second one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from flask_cronlock import Failed, Ran, Reason, Skipped
from flask_cronlock.exceptions import (
    JobTimeout,
    LockLost,
    NestedRun,
    NoFreeConnection,
    UnknownJob,
)

from ..support.databases import Database
from ..support.sites import BRISK
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

POOL_OF_ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    """A world with one connection; a wait for a second one ends in NoFreeConnection."""
    world = make_world(url=route, engine_options=POOL_OF_ONE)

    @world.cron.job("digest", every="1d")
    def digest() -> int:
        world.note("sent")
        return 3

    @world.cron.job("failing", every="1d")
    def failing() -> None:
        world.note("lost")
        raise ValueError("as asked")

    return world


def free_connection(world: World) -> bool:
    with world.app.app_context():
        return world.db.engine.pool.checkedout() == 0


def test_a_run_and_its_late_duplicate(world: World) -> None:
    assert isinstance(world.run("digest"), Ran)
    assert isinstance(world.run("digest"), Skipped)
    assert world.notes == ["sent"]
    assert free_connection(world)


def test_a_failure_is_recorded(world: World) -> None:
    assert isinstance(world.run("failing"), Failed)
    assert world.attempts() == [("failing", "ValueError: as asked")]
    assert free_connection(world)


def test_a_run_whose_lock_is_taken_tells_who_has_it(world: World, database: Database) -> None:
    with database.connect() as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))")
        outcome = world.run("digest")
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert outcome.held_by
    assert free_connection(world)


def test_an_unknown_job_takes_no_connection(world: World) -> None:
    with world.app.app_context(), world.db.engine.connect(), pytest.raises(UnknownJob):
        world.cron.run("no-such-job")
    assert world.post("no-such-job").status_code == 404


@pytest.mark.parametrize("in_sql", [True, False], ids=["in SQL", "idle"])
def test_a_job_past_its_timeout_is_recorded(world: World, in_sql: bool) -> None:
    @world.cron.job("slow", every="1d", timeout=BRISK)
    def slow() -> None:
        if in_sql:
            world.db.session.execute(world.db.text("SELECT pg_sleep(30)"))
        else:
            time.sleep(BRISK + 0.2)

    outcome = world.run("slow")
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, JobTimeout)
    assert [job for job, _ in world.attempts()] == ["slow"]
    assert isinstance(world.run("digest"), Ran)
    assert free_connection(world)


def test_a_connection_lost_in_the_job_is_recorded_through_a_new_one(world: World) -> None:
    @world.cron.job("cut-off", every="1d")
    def cut_off() -> None:
        pid = world.db.session.scalar(world.db.text("SELECT pg_backend_pid()"))
        world.database.query("SELECT pg_terminate_backend(%s)", pid)
        world.note("too late")

    outcome = world.run("cut-off")
    assert isinstance(outcome, Failed)
    assert type(outcome.error) is LockLost
    assert [job for job, _ in world.attempts()] == ["cut-off"]
    assert isinstance(world.run("digest"), Ran)
    assert free_connection(world)


def test_a_lock_taken_skipped_and_failing(world: World, database: Database) -> None:
    def fail(_: object) -> None:
        raise ValueError("as asked")

    with world.app.app_context():
        assert isinstance(world.cron.with_lock("cache", lambda _: world.note("warm")), Ran)
        with pytest.raises(ValueError, match="as asked"):
            world.cron.with_lock("cache", fail)
        with database.connect() as other, other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended('cache', 0))")
            assert isinstance(world.cron.with_lock("cache", fail), Skipped)
            assert isinstance(world.cron.with_lock("cache", fail, wait="0.1s"), Skipped)
    assert world.notes == ["warm"]
    assert free_connection(world)


def test_a_run_inside_a_run_is_refused_before_it_waits_for_a_connection(world: World) -> None:
    refused: list[Exception] = []

    @world.cron.job("outer", every="1d")
    def outer() -> None:
        for inner in (
            lambda: world.cron.run("outer"),
            lambda: world.cron.run("digest"),
            lambda: world.cron.with_lock("cache", lambda _: None),
        ):
            with pytest.raises(NestedRun) as caught:
                inner()
            refused.append(caught.value)
        world.mark()

    assert isinstance(world.run("outer"), Ran)
    assert len(refused) == 3
    assert world.marks == 1


def request_that_holds_a_transaction(world: World, work: Callable[[], Any]) -> Any:
    """Post with ``db.session`` used before the view is reached, as a login check does."""

    @world.app.before_request
    def look_up_user() -> None:
        work()

    return world.post("digest")


def test_a_request_with_an_open_clean_transaction_is_served(world: World) -> None:
    def read() -> None:
        world.db.session.execute(world.db.text("SELECT 1"))

    response = request_that_holds_a_transaction(world, read)
    assert response.status_code == 200, response.json
    assert response.json["outcome"] == "ran"


def test_a_request_with_uncommitted_writes_is_refused(world: World) -> None:
    response = request_that_holds_a_transaction(world, lambda: world.note("unsaved"))
    assert response.status_code == 500
    assert "uncommitted" in response.json["error"]
    assert world.notes == []


def test_a_caller_in_a_transaction_is_told_to_end_it(world: World) -> None:
    with world.app.app_context():
        world.db.session.execute(world.db.text("SELECT 1"))
        with pytest.raises(NoFreeConnection, match="end the caller's open transaction"):
            world.cron.run("digest")
        world.db.session.rollback()
        assert isinstance(world.cron.run("digest"), Ran)


def test_the_connection_goes_back_as_it_was(world: World) -> None:
    fresh = state(world.probe) | {"autocommit": False}
    with world.app.app_context():
        for job in ("digest", "failing", "digest"):
            world.cron.run(job)
            with world.db.engine.connect() as connection:
                assert state(connection.connection.driver_connection) == fresh


def state(driver: Any) -> dict[str, Any]:
    names = ("autocommit", "isolation_level", "prepare_threshold")
    return {name: getattr(driver, name) for name in names}
