"""A run ends with its timeout, whatever its process does, and its slot can run again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import product

import pytest
from sqlalchemy.exc import SQLAlchemyError

from flask_cronlock import Failed, Ran, Run
from flask_cronlock.exceptions import JobTimeout

from ..support.databases import Database
from ..support.holders import free, holding
from ..support.instances import at_once, gunicorn
from ..support.processes import wait_until
from ..support.sites import BRISK, Site
from ..support.worlds import World

TIMEOUT = BRISK


def sql(world: World, statement: str) -> None:
    world.db.session.execute(world.db.text(statement))


def in_one_statement(world: World) -> None:
    sql(world, "SELECT pg_sleep(60)")


def in_steps(world: World) -> None:
    for _ in range(600):
        sql(world, "SELECT 1")
        time.sleep(0.1)


def idle(world: World) -> None:
    wait_until(lambda: free(world.database))
    sql(world, "SELECT 1")


def deaf_to_errors(world: World) -> None:
    for _ in range(3):
        with contextlib.suppress(SQLAlchemyError):
            in_one_statement(world)
        with contextlib.suppress(SQLAlchemyError):
            world.db.session.rollback()


WASTES = [in_one_statement, in_steps, idle, deaf_to_errors]


@pytest.mark.parametrize(
    ("site", "spend_time"),
    [*product(["direct", "before 17"], WASTES), *product(["pgbouncer"], [in_one_statement, idle])],
    indirect=["site"],
)
def test_a_job_past_its_timeout_fails_and_leaves_nothing_but_its_attempt(
    site: Site, site_world: World, spend_time: Callable[[World], None]
) -> None:
    world, hurried = site_world, False

    @world.cron.job("slow", every="1d", timeout=TIMEOUT)
    def slow() -> None:
        world.note("hurried" if hurried else "late")
        if not hurried:
            spend_time(world)

    failed = world.run("slow")
    released = free(site.database)
    hurried = True

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, JobTimeout)
    assert failed.duration is not None
    assert failed.duration.total_seconds() < site.free_within(TIMEOUT)
    assert released
    assert world.notes == []
    assert world.runs() == []
    assert [(job, error[:10]) for job, error in world.attempts()] == [("slow", "JobTimeout")]
    assert isinstance(world.run("slow"), Ran)
    assert world.notes == ["hurried"]


def test_a_run_frozen_while_idle_loses_its_lock_and_learns_of_it(
    site: Site, site_world: World, next_hit: Callable[[str], str]
) -> None:
    with holding(site, "idle", TIMEOUT, seconds=TIMEOUT + 1) as holder:
        holder.freeze()
        assert next_hit("idle") == "already running"
        wait_until(lambda: free(site.database), site.free_within(TIMEOUT))
        assert next_hit("idle") == "ran"
        answer = holder.wake()

    assert answer["outcome"] == "failed"
    assert answer["error"].startswith("JobTimeout")
    assert site_world.notes == ["next idle"]
    assert [job for job, _ in site_world.attempts()] == ["idle"]


@pytest.mark.parametrize("site", ["direct", "before 17"], indirect=True)
def test_a_run_frozen_in_sql_loses_its_lock_in_the_promised_time(
    site: Site, site_world: World, next_hit: Callable[[str], str]
) -> None:
    # So that twice the timeout is longer than what is promised.
    timeout = 4.5 if site.whole else TIMEOUT
    with holding(site, "in-sql", timeout) as holder:
        holder.freeze()
        wait_until(lambda: free(site.database), site.free_within(timeout))
        assert next_hit("in-sql") == "ran"
        assert holder.wake()["error"].startswith("JobTimeout")

    assert site_world.notes == ["next in-sql"]


@pytest.mark.parametrize("site", ["before 17"], indirect=True)
def test_the_limits_of_an_old_server_shrink_with_the_time_left(site_world: World) -> None:
    seen: list[int] = []
    limit = "SELECT setting FROM pg_settings WHERE name = :name"

    @site_world.cron.job("report", timeout=60)
    def report(run: Run) -> None:
        time.sleep(0.6)
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            statement = site_world.db.text(limit)
            seen.append(int(run.session.execute(statement, {"name": name}).scalar_one()))

    assert isinstance(site_world.run("report"), Ran)
    assert len(seen) == 2
    assert max(seen) <= 59_400


@pytest.mark.parametrize("site", ["before 17"], indirect=True)
def test_a_statement_past_the_deadline_is_not_sent_to_an_old_server(site_world: World) -> None:
    refused: list[type[Exception]] = []

    @site_world.cron.job("report", timeout=BRISK)
    def report() -> None:
        try:
            while True:
                sql(site_world, "SELECT 1")
        except Exception as error:
            refused.append(type(error))
            raise

    assert isinstance(site_world.run("report"), Failed)
    assert refused == [JobTimeout]


def test_a_timeout_ends_a_job_before_gunicorn_ends_its_worker(
    database: Database, world: World
) -> None:
    options = ["-w", "2", "-k", "sync", "--threads", "1", "--timeout", "5"]
    with gunicorn(database, *options, JOB_SECONDS="8", JOB_TIMEOUT="3s") as web:
        workers = web.workers()
        answers = at_once([lambda: web.post("stepwise"), lambda: web.post("in-sql")])
        left = web.workers()

    for answer in answers:
        assert (answer.status, answer.body["error"]) == (504, "Job timed out")
        assert answer.seconds < 5
    assert left == workers
    assert {(job, error[:10]) for job, error in world.attempts()} == {
        ("stepwise", "JobTimeout"),
        ("in-sql", "JobTimeout"),
    }
    assert world.runs() == []
    assert database.advisory_locks() == 0
