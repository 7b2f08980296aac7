"""What chaos complains of at the end: each thing that is left in the database and must not be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC
from uuid import uuid4

import pytest

from flask_cronlock import Ran, Run

from ..chaos.remains import complaints, effects_in, wait_for_quiet
from ..chaos.work import EFFECT, EFFECTS
from ..support.databases import Database
from ..support.worlds import World

LEDGER = """
INSERT INTO cronlock_run (id, namespace, job, slot_key, scheduled_at, state, trigger, forced,
                          instance, app, started_at, finished_at)
SELECT %s, namespace, job, %s, scheduled_at, %s, trigger, forced, instance, app, started_at,
       finished_at
FROM cronlock_run LIMIT 1
"""
ATTEMPT = """
INSERT INTO cronlock_attempt (id, namespace, job, scheduled_at, trigger, forced, instance, app,
                              started_at, finished_at, error)
SELECT id, namespace, job, scheduled_at, trigger, forced, instance, app, started_at, finished_at, ''
FROM cronlock_run
"""


@pytest.fixture
def after_a_run(world: World) -> Database:
    """The database of a job that ran once, and had its effect."""
    world.database.query(EFFECTS)

    @world.cron.job("report", every="1h")
    def report(run: Run) -> None:
        assert run.slot is not None
        slot = run.slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        effect = {"job": run.job, "slot": slot, "run": str(run.id)}
        run.session.execute(EFFECT, effect)

    assert isinstance(world.run("report"), Ran)
    return world.database


def found(database: Database) -> list[str]:
    return complaints(database, effects_in(database))


def test_nothing_is_complained_of_after_a_good_run(after_a_run: Database) -> None:
    assert found(after_a_run) == []


@contextmanager
def lock(database: Database) -> Iterator[None]:
    with database.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        yield


def test_a_lock_that_is_held_is_found(after_a_run: Database) -> None:
    with lock(after_a_run):
        assert found(after_a_run) == ["1 advisory locks held"]


WRONG: dict[str, tuple[Callable[[Database], object], str]] = {
    "running": (
        lambda database: database.query(LEDGER, uuid4(), "another", "running"),
        "1 rows of the ledger not done",
    ),
    "failed and done": (lambda database: database.query(ATTEMPT), "1 runs both failed and done"),
    "no effect": (
        lambda database: database.query("DELETE FROM effect"),
        "1 done rows without their effect",
    ),
    "another run's effect": (
        lambda database: database.query("INSERT INTO effect VALUES ('report', 'now', 'x')"),
        "1 effects without their done row",
    ),
    "two done rows": (
        lambda database: database.query(LEDGER, uuid4(), None, "done"),
        "1 done rows more than slots",
    ),
}


@pytest.mark.parametrize(("spoil", "complaint"), WRONG.values(), ids=WRONG)
def test_what_must_not_be_left_is_found(
    after_a_run: Database, spoil: Callable[[Database], object], complaint: str
) -> None:
    spoil(after_a_run)
    assert complaint in found(after_a_run)


def test_a_run_that_does_not_end_is_waited_for_no_longer_than_was_said(
    after_a_run: Database,
) -> None:
    with after_a_run.connect(application_name="cronlock run") as running:
        running.execute("BEGIN")
        wait_for_quiet(after_a_run, 0.1)
        running.execute("ROLLBACK")
    wait_for_quiet(after_a_run, 30)
