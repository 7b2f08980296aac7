"""Once COMMIT is on its way, the outcome is what the server did, whatever is raised here."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event

from flask_cronlock import Failed, Ran

from ..support.databases import Database
from ..support.outcomes import LONG
from ..support.processes import wait_until
from ..support.worlds import World, world_on

SLOW_COMMIT = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.fixture
def alarm() -> Iterator[int]:
    """Give a job an alarm that goes off later, and take it away at the end."""
    before = signal.getsignal(signal.SIGALRM)
    yield signal.ITIMER_REAL
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("raised", [TimeoutError("forgotten"), SystemExit(1)])
def test_a_run_whose_commit_was_interrupted_has_failed_only_if_nothing_was_kept(
    world: World, alarm: int, raised: BaseException
) -> None:
    world.probe.execute(SLOW_COMMIT)

    def go_off(*_: Any) -> None:
        raise raised

    signal.signal(signal.SIGALRM, go_off)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("kept")
        signal.setitimer(alarm, 0.2)

    try:
        outcome: object = world.run("digest")
    except SystemExit:
        outcome = None
    # What is kept shows once the server is through with the COMMIT, and not before.
    wait_until(lambda: not world.database.advisory_locks())

    if isinstance(outcome, Failed):
        # The driver cancelled the COMMIT, and the server followed.
        assert world.notes == world.runs() == []
        assert len(world.attempts()) == 1
    else:
        assert world.notes == ["kept"]
        assert [state for _, _, state in world.runs()] == ["done"]
        assert world.attempts() == []


@pytest.mark.parametrize("where", ["commit", "checkin"])
def test_a_listener_of_the_apps_that_raises_after_the_commit_is_logged(
    world: World, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    armed: list[bool] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("kept")
        armed.append(True)

    def listener(*_: Any) -> None:
        if armed:
            armed.clear()
            raise RuntimeError("the listener's own")

    with world.app.app_context():
        event.listen(world.db.engine, where, listener)

    assert isinstance(world.run("digest"), Ran)
    assert world.notes == ["kept"]
    assert world.attempts() == []
    assert "the listener's own" in caplog.text


def test_a_repr_that_queries_does_so_on_the_runs_own_connection(database: Database) -> None:
    class Curious:
        def __repr__(self) -> str:
            return str(world.db.session.scalar(world.db.text("SELECT 'asked'")))

    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}
    with world_on(database, engine_options=options) as world:
        world.cron.job("digest", every=LONG)(lambda: Curious())

        assert isinstance(world.run("digest"), Ran)
        assert database.value("SELECT value FROM cronlock_run") == '"asked"'
