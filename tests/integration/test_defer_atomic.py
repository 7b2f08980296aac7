"""What a run defers is kept with what it writes, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ResourceClosedError

from flask_cronlock import Failed, Outcome, Run
from flask_cronlock.exceptions import JobTimeout, LockLost

from ..support.bodies import Gate
from ..support.databases import Database
from ..support.outcomes import error_of, value_of
from ..support.sites import BRISK
from ..support.tasks import Shared, deferred, rows
from ..support.worlds import World, world_on

Digest = Callable[..., Outcome]


@pytest.fixture(scope="module", params=["direct", "pgbouncer"])
def shared(request: pytest.FixtureRequest, module_database: Database) -> Iterator[Shared]:
    url = module_database.url
    if request.param == "pgbouncer":
        url = request.getfixturevalue("pgbouncer").url(module_database)
    with world_on(module_database, url=url) as world:
        world.cron.task("send")(lambda n: None)
        world.cron.job("poll")(lambda run: run.defer("send", n=1))
        yield Shared(world, timeout=BRISK)


@pytest.fixture
def world(shared: Shared) -> World:
    shared.world.database.emptied()
    return shared.world


@pytest.fixture
def digest(world: World, shared: Shared) -> Digest:
    return shared.digest


def test_a_run_that_commits_keeps_what_it_deferred(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)
        run.defer_many("send", [{"n": 2}, {"n": 3}])
        world.note("stamped")

    value_of(digest(body))
    assert deferred(world) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert {(row.queue, row.task) for row in rows(world)} == {("cronlock.default", "send")}
    assert world.notes == ["stamped"]


def test_a_run_that_fails_deferred_nothing(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer_many("send", [{"n": n} for n in range(3)])
        world.note("stamped")
        raise ValueError("after all")

    assert isinstance(digest(body), Failed)
    assert rows(world) == []
    assert world.notes == []


def test_a_jobs_own_rollback_drops_what_it_had_deferred(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)
        run.session.rollback()
        run.defer("send", n=2)
        run.session.commit()
        run.defer("send", n=3)
        run.session.rollback()

    value_of(digest(body))
    assert deferred(world) == [{"n": 2}]


def test_a_savepoint_drops_its_own_alone(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        for n in range(4):
            with suppress(ValueError), run.session.begin_nested():
                run.defer("send", n=n)
                world.note(str(n))
                if n % 2:
                    raise ValueError(n)

    value_of(digest(body))
    assert deferred(world) == [{"n": 0}, {"n": 2}]
    assert world.notes == ["0", "2"]


def test_nobody_sees_it_before_the_outermost_commit(
    world: World, digest: Digest, gate: Gate
) -> None:
    def body(run: Run) -> None:
        with run.session.begin_nested():
            run.defer("send", n=1)
        run.session.commit()
        gate.hold()

    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(digest, body)
        try:
            assert gate.entered.wait(60), outcome
            assert rows(world) == []
        finally:
            gate.open()
        value_of(outcome.result(60))
    assert deferred(world) == [{"n": 1}]


def test_it_is_written_in_the_transaction_of_the_claim(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)
        begun.append(run.session.scalar(text("SELECT now()")))
        claims.append(run.session.scalar(text("SELECT count(*) FROM cronlock_run")))

    begun: list[object] = []
    claims: list[object] = []
    value_of(digest(body))
    assert claims == [1]
    written = world.database.query("SELECT at FROM procrastinate_events WHERE type = 'deferred'")
    assert written == [(begun[0],)]


def test_a_forced_run_defers_too(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)

    for _ in range(2):
        value_of(digest(body, force=True))
    assert len(rows(world)) == 2


def test_a_run_without_slots_defers_too(world: World) -> None:
    for _ in range(2):
        value_of(world.run("poll"))
    assert len(rows(world)) == 2


def test_an_error_of_sql_that_the_job_swallowed_keeps_nothing_and_says_so(
    world: World, digest: Digest
) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)
        with suppress(Exception):
            run.session.execute(text("SELECT 1/0"))

    assert isinstance(error_of(digest(body)), LockLost)
    assert rows(world) == []
    assert len(world.attempts()) == 1


def test_a_run_that_outlives_its_time_deferred_nothing(world: World, digest: Digest) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)
        run.session.execute(text("SELECT pg_sleep(30)"))

    assert isinstance(error_of(digest(body)), JobTimeout)
    assert rows(world) == []


def test_a_run_that_has_ended_defers_nothing_more(world: World, digest: Digest) -> None:
    runs: list[Run] = []
    value_of(digest(runs.append))
    with world.app.app_context(), pytest.raises(ResourceClosedError):
        runs[0].defer("send", n=1)
    assert rows(world) == []
