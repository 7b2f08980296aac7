"""What a job may do to its session: end its own savepoint, never the run's transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from flask_cronlock import Reason
from flask_cronlock.exceptions import LockLost, SessionReplaced

from ..support.databases import ADVISORY_LOCKS
from ..support.outcomes import LONG, elsewhere, error_of, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_a_job_may_end_its_session_half_way_and_keeps_the_lock(
    make_world: Callable[..., World], route: str, end: str
) -> None:
    world = make_world(url=route)
    meanwhile: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        getattr(world.db.session, end)()
        meanwhile.append(elsewhere(lambda: world.run("digest")))
        assert world.notes == []
        world.note("second")

    value_of(world.run("digest"))

    assert reason_of(meanwhile[0]) is Reason.ALREADY_RUNNING
    assert world.notes == (["first", "second"] if end == "commit" else ["second"])
    assert world.runs()[0][2] == "done"
    assert world.database.advisory_locks() == 0


def test_what_a_job_committed_is_undone_when_it_fails_later(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        world.db.session.commit()
        raise ValueError

    assert isinstance(error_of(world.run("digest")), ValueError)

    assert world.notes == []
    assert world.runs() == []


def test_a_job_that_rolls_all_back_has_run_and_kept_nothing(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("gone")
        world.db.session.rollback()

    value_of(world.run("digest"))

    assert world.notes == []
    assert reason_of(world.run("digest")) is Reason.ALREADY_RAN


def remove(world: World) -> None:
    world.db.session.remove()


def remove_and_go_on(world: World) -> None:
    world.db.session.remove()
    world.note("in another transaction")


def put_another_session_there(world: World) -> None:
    world.db.session.registry.set(world.db.session.session_factory())


def invalidate(world: World) -> None:
    world.db.session().invalidate()


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (remove, SessionReplaced),
        (remove_and_go_on, SessionReplaced),
        (put_another_session_there, SessionReplaced),
        (invalidate, LockLost),
    ],
)
def test_a_job_that_loses_its_session_fails_and_the_next_one_runs(
    world: World, how: Callable[[World], None], error: type[Exception]
) -> None:
    @world.cron.job("careless", every=LONG)
    def careless() -> None:
        world.note("careless")
        how(world)

    @world.cron.job("clean", every=LONG)
    def clean() -> None:
        world.note("clean")

    assert isinstance(error_of(world.run("careless")), error)

    assert world.database.advisory_locks() == 0
    assert [job for job, _ in world.attempts()] == ["careless"]
    value_of(world.run("clean"))
    assert world.notes == ["clean"]
    with world.app.app_context():
        assert world.db.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_savepoints_three_deep_that_are_rolled_back_keep_the_lock(
    make_world: Callable[..., World], route: str
) -> None:
    world = make_world(url=route)
    meanwhile: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        session = world.db.session
        outer = session.begin_nested()
        middle = session.begin_nested()
        inner = session.begin_nested()
        for savepoint in (inner, middle, outer):
            world.note("undone")
            savepoint.rollback()
            meanwhile.append(elsewhere(lambda: world.run("digest")))
        world.note("kept")

    value_of(world.run("digest"))

    assert [reason_of(outcome) for outcome in meanwhile] == [Reason.ALREADY_RUNNING] * 3
    assert world.notes == ["kept"]


def test_an_error_that_a_savepoint_caught_does_not_fail_the_job(world: World) -> None:
    world.probe.execute("CREATE UNIQUE INDEX once ON note (text)")

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("once")
        with pytest.raises(IntegrityError), world.db.session.begin_nested():
            world.note("once")

    value_of(world.run("digest"))
    assert world.notes == ["once"]
    world.probe.execute("DROP INDEX once")


def test_lock_claim_and_the_jobs_writes_share_one_transaction(world: World) -> None:
    found: dict[str, Any] = {}

    @world.cron.job("digest", every=LONG)
    def digest(run: Any) -> None:
        world.note("written")
        about = world.db.session.execute(
            world.db.text("SELECT pg_backend_pid(), pg_current_xact_id()::text")
        ).one()
        found["pid"], found["xid"] = about
        found["holder"] = world.database.value(f"SELECT pid FROM {ADVISORY_LOCKS}")
        assert run.session is world.db.session()

    value_of(world.run("digest"))

    assert found["holder"] == found["pid"]
    claimed_by = world.database.value("SELECT xmin::text FROM cronlock_run")
    assert claimed_by == found["xid"]


def another_context(world: World) -> None:
    with world.app.app_context():
        world.note("outside")
        world.db.session.commit()


def test_a_second_transaction_outside_a_run_is_nobodys_business(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        elsewhere(lambda: another_context_of(world))

    value_of(world.run("digest"))
    another_context_of(world)

    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def another_context_of(world: World) -> None:
    with world.app.app_context():
        another_context(world)


def add_and_leave(world: World) -> None:
    world.db.session.add(world.note_class(text="lost"))


def test_what_a_job_adds_in_another_app_context_and_does_not_flush_is_lost_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("inside")
        with world.app.app_context():
            add_and_leave(world)

    value_of(world.run("digest"))
    assert world.notes == ["inside"]
    assert actions(caplog).count("second_transaction") == 1


def test_the_default_engine_by_name_is_the_runs_own_connection(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    statement = world.db.text("INSERT INTO note VALUES ('inside')")

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        engine = {"bind": world.db.engine}
        world.db.session.connection(bind_arguments=engine).execute(statement)
        world.db.session.execute(statement, bind_arguments=engine)
        raise ValueError

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert world.notes == []
    assert "second_transaction" not in actions(caplog)


def test_what_a_job_adds_to_its_own_session_is_no_matter(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        add_and_leave(world)

    value_of(world.run("digest"))
    assert world.notes == ["lost"]
    assert "second_transaction" not in actions(caplog)


def actions(caplog: pytest.LogCaptureFixture) -> list[str | None]:
    return [record.__dict__.get("action") for record in caplog.records]
