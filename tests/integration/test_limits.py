"""The limits of a run hold from its first statement, and are gone with its transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from flask_cronlock import Failed, Outcome, Ran, Reason, Run, Skipped
from flask_cronlock.exceptions import JobTimeout
from flask_cronlock.limits import milliseconds

from ..support.databases import Database, Server
from ..support.holders import NO_LIMITS
from ..support.outcomes import elsewhere
from ..support.pgbouncer import pgbouncer_before
from ..support.sites import BRISK
from ..support.worlds import World

SETTINGS = [
    "transaction_timeout",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "client_connection_check_interval",
    "application_name",
]
NOW = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"


def limits_in(world: World) -> dict[str, str]:
    """Return the settings as a job sees them."""
    statement = world.db.text(NOW.replace("%s", ":names"))
    rows = world.db.session.execute(statement, {"names": SETTINGS})
    return dict(rows.all())


def test_a_run_knows_its_deadline_and_what_is_left_of_its_time(world: World) -> None:
    seen: list[tuple[datetime, datetime, timedelta]] = []

    @world.cron.job("report", timeout="90s")
    def report(run: Run) -> None:
        for _ in range(2):
            seen.append((run.started_at, run.deadline, run.remaining))
            time.sleep(0.01)

    assert isinstance(world.run("report"), Ran)

    (started, deadline, first), (_, same, second) = seen
    assert deadline == same == started + timedelta(seconds=90)
    assert timedelta() < second < first < timedelta(seconds=90)
    assert second <= first - timedelta(seconds=0.01)
    assert abs(started - datetime.now(UTC)) < timedelta(seconds=60)


def test_nothing_is_left_of_a_time_that_is_up(world: World) -> None:
    left: list[timedelta] = []

    @world.cron.job("report", timeout=BRISK)
    def report(run: Run) -> None:
        time.sleep(BRISK + 0.1)
        left.append(run.remaining)

    assert isinstance(world.run("report"), Failed)
    assert left == [timedelta()]


def test_a_job_that_lifted_the_servers_limits_is_too_late_at_its_end(world: World) -> None:
    @world.cron.job("report", timeout=BRISK)
    def report(run: Run) -> None:
        run.session.execute(world.db.text(NO_LIMITS))
        world.note("too late")
        time.sleep(BRISK + 0.1)

    outcome = world.run("report")

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, JobTimeout)
    assert world.notes == []


def test_the_limits_outlast_what_the_job_rolls_back(
    make_world: Callable[..., World], route: str
) -> None:
    world = make_world(url=route)
    seen: list[dict[str, str]] = []

    @world.cron.job("report", timeout="90s")
    def report(run: Run) -> None:
        seen.append(limits_in(world))
        run.session.rollback()
        seen.append(limits_in(world))
        with run.session.begin_nested() as savepoint:
            world.note("undone")
            savepoint.rollback()
        run.session.close()
        seen.append(limits_in(world))

    assert isinstance(world.run("report"), Ran)

    assert seen[0] == seen[1] == seen[2]
    assert seen[0].pop("application_name").startswith("cronlock ")
    assert seen[0] == {
        "transaction_timeout": "90000",
        "statement_timeout": "90000",
        "idle_in_transaction_session_timeout": "90000",
        "lock_timeout": "0",
        "client_connection_check_interval": "1000",
    }


@pytest.mark.parametrize("how", ["job", "with_lock", "with_lock that waits"])
def test_work_waits_for_locks_as_long_as_the_server_says(
    database: Database, make_world: Callable[..., World], how: str
) -> None:
    database.query(f"ALTER DATABASE {database.name} SET lock_timeout = '7s'")
    world = make_world()

    @world.cron.job("report", every="1d")
    def report() -> str:
        return limits_in(world)["lock_timeout"]

    def locked() -> Outcome:
        wait = 1 if how.endswith("waits") else None
        with world.app.app_context():
            return world.cron.with_lock("report", lambda _: report(), wait=wait)

    outcome = world.run("report") if how == "job" else locked()

    assert isinstance(outcome, Ran)
    assert outcome.value == "7000"


@pytest.mark.parametrize("whose", ["DATABASE {0}", "ROLE CURRENT_USER IN DATABASE {0}"])
@pytest.mark.parametrize(
    "limit", ["idle_in_transaction_session_timeout", "transaction_timeout", "statement_timeout"]
)
def test_the_jobs_own_timeout_governs_and_not_the_servers_shorter_one(
    database: Database, make_world: Callable[..., World], limit: str, whose: str
) -> None:
    database.query(f"ALTER {whose.format(database.name)} SET {limit} = '500ms'")
    world = make_world()
    contenders: list[Outcome] = []

    @world.cron.job("report", every="1d", timeout=60)
    def report(run: Run) -> None:
        assert world.marks == 0, "the contender runs too"
        world.mark()
        world.note("first half")
        if limit == "statement_timeout":
            run.session.execute(world.db.text("SELECT pg_sleep(1)"))
        else:
            time.sleep(1)
        contenders.append(elsewhere(lambda: world.run("report")))
        world.note("second half")

    assert isinstance(world.run("report"), Ran)

    [contender] = contenders
    assert isinstance(contender, Skipped)
    assert contender.reason is Reason.ALREADY_RUNNING
    assert world.notes == ["first half", "second half"]
    assert [state for *_, state in world.runs()] == ["done"]


def test_a_shorter_limit_that_the_job_set_itself_is_a_timeout_too(world: World) -> None:
    @world.cron.job("report", timeout=60)
    def report(run: Run) -> None:
        run.session.execute(world.db.text("SET LOCAL idle_in_transaction_session_timeout = 100"))
        time.sleep(0.5)
        world.note("too late")

    outcome = world.run("report")

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, JobTimeout)


def test_nothing_is_left_on_the_backend_behind_a_pooler(
    postgres: Server, database: Database, make_world: Callable[..., World]
) -> None:
    with pgbouncer_before(postgres, default_pool_size=1) as pooler:
        world = make_world(url=pooler.url(database))

        def on_the_backend() -> dict[str, str]:
            with world.app.app_context():
                return limits_in(world)

        @world.cron.job("good", every="1d")
        def good() -> None:
            world.note("good")

        @world.cron.job("failing")
        def failing() -> None:
            raise ValueError("as asked")

        @world.cron.job("slow", timeout=BRISK)
        def slow() -> None:
            world.db.session.execute(world.db.text("SELECT pg_sleep(60)"))

        clean = on_the_backend()
        assert set(clean) == set(SETTINGS)
        outcomes = []
        for name in ("good", "good", "failing", "slow"):
            outcomes.append(type(world.run(name)))
            assert on_the_backend() == clean
        with world.app.app_context():
            world.cron.with_lock("good", lambda _: world.note("locked"), wait=1)
        assert on_the_backend() == clean

    assert outcomes == [Ran, Skipped, Failed, Failed]
    assert world.notes == ["good", "locked"]


def test_the_longest_name_and_timeout_leave_room_for_the_pid(
    make_world: Callable[..., World],
) -> None:
    world = make_world(settings={"instance": "i" * 70})
    contenders: list[Outcome] = []

    @world.cron.job("report", timeout="24d")
    def report(run: Run) -> str:
        contenders.append(elsewhere(lambda: world.run("report")))
        return run.instance.partition("/")[2]

    outcome = world.run("report")

    assert isinstance(outcome, Ran)
    [contender] = contenders
    assert isinstance(contender, Skipped)
    assert contender.held_by is not None
    assert contender.held_by.endswith(f"i/{outcome.value}")


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(timedelta(), "1"), (timedelta(microseconds=1001), "2"), (timedelta(seconds=3), "3000")],
)
def test_a_limit_is_never_shorter_than_asked_for_and_never_none(
    duration: timedelta, expected: str
) -> None:
    assert milliseconds(duration) == expected
