"""Signals and log records: what is told of a run, and that no listener changes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flask_cronlock import (
    Failed,
    Ran,
    Run,
    Skipped,
    job_failed,
    job_skipped,
    job_started,
    job_succeeded,
)

from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

SIGNALS = [job_started, job_succeeded, job_skipped, job_failed]
Heard = list[tuple[str, Any, dict[str, Any]]]


@pytest.fixture
def heard(world: World) -> Iterator[Heard]:
    found: Heard = []
    with ExitStack() as stack:
        for signal in SIGNALS:

            def hear(sender: Any, name: str = signal.name, **about: Any) -> None:
                found.append((name, sender, about))

            stack.enter_context(signal.connected_to(hear, world.app))
        yield found


def test_signals_come_in_order_from_the_app(world: World, heard: Heard) -> None:
    world.cron.job("good", every=LONG)(lambda: 3)
    world.cron.job("bad", every=LONG)(lambda: 1 / 0)

    outcomes = [world.run("good"), world.run("good"), world.run("bad")]

    names = ["job-started", "job-succeeded", "job-skipped", "job-started", "job-failed"]
    assert [name for name, _, _ in heard] == names
    assert all(sender is world.app for _, sender, _ in heard)
    assert [about["job"] for *_, about in heard] == ["good"] * 3 + ["bad"] * 2
    assert [about["outcome"] for *_, about in heard if "outcome" in about] == outcomes
    assert [type(outcome) for outcome in outcomes] == [Ran, Skipped, Failed]
    assert isinstance(heard[0][2]["run"], Run)


def test_only_job_started_comes_before_the_commit(world: World) -> None:
    seen: list[list[Any]] = []

    def look(app: Any, **_: Any) -> None:
        seen.append(world.notes)
        seen.append([state for *_, state in world.runs()])

    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))
    with job_started.connected_to(look, world.app), job_succeeded.connected_to(look, world.app):
        value_of(world.run("digest"))

    assert seen == [[], [], ["sent"], ["done"]]


def test_job_failed_comes_when_the_attempt_is_recorded(world: World) -> None:
    seen: list[Any] = []
    world.cron.job("digest", every=LONG)(lambda: 1 / 0)

    def look(app: Any, **_: Any) -> None:
        seen.append((world.attempts(), world.database.advisory_locks()))

    with job_failed.connected_to(look, world.app):
        error_of(world.run("digest"))

    assert seen == [([("digest", "ZeroDivisionError: division by zero")], 0)]


@pytest.mark.parametrize("signal", [job_started, job_succeeded])
def test_a_subscriber_that_raises_is_logged_and_stops_nobody(
    world: World, heard: Heard, caplog: pytest.LogCaptureFixture, signal: Any
) -> None:
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))

    def fail(app: Any, **_: Any) -> None:
        raise ValueError("of the subscriber's")

    with signal.connected_to(fail, world.app):
        value_of(world.run("digest"))

    assert world.notes == ["sent"]
    assert [name for name, *_ in heard] == ["job-started", "job-succeeded"]
    [record] = [r for r in caplog.records if r.__dict__.get("action") == "subscriber_failed"]
    assert signal.name in record.getMessage()
    assert record.exc_info is not None


def write(world: World) -> None:
    world.note("of the subscriber's")


def write_and_commit(world: World) -> None:
    write(world)
    world.db.session.commit()


def write_a_fault(world: World) -> None:
    world.db.session.execute(world.db.text("SELECT 1/0"))


def swallow_a_fault(world: World) -> None:
    with pytest.raises(Exception, match="division"):
        write_a_fault(world)


def add_an_unmappable(world: World) -> None:
    world.db.session.add(object())


def remove(world: World) -> None:
    write(world)
    world.db.session.remove()


def close(world: World) -> None:
    write(world)
    world.db.session.close()


def take_another_session(world: World) -> None:
    world.db.session.registry.set(world.db.session.session_factory())


def commit_the_connection(world: World) -> None:
    world.db.session.connection().commit()


def close_the_connection(world: World) -> None:
    world.db.session.connection().close()


def set_limits(world: World) -> None:
    world.db.session.execute(world.db.text("SET LOCAL search_path = nowhere"))
    world.db.session.commit()


@pytest.mark.parametrize(
    "deed",
    [
        *(write, write_and_commit, write_a_fault, swallow_a_fault, add_an_unmappable, remove),
        *(close, take_another_session, commit_the_connection, close_the_connection, set_limits),
    ],
)
def test_what_a_job_started_subscriber_does_to_the_session_changes_nothing(
    world: World, deed: Callable[[World], None]
) -> None:
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))

    with job_started.connected_to(lambda app, **_: deed(world), world.app):
        value_of(world.run("digest"))

    assert world.notes == ["sent"]
    assert [state for *_, state in world.runs()] == ["done"]
    assert world.database.advisory_locks() == 0


def test_a_subscriber_of_another_app_hears_nothing(world: World) -> None:
    heard = []
    world.cron.job("digest", every=LONG)(lambda: None)
    with job_succeeded.connected_to(lambda app, **_: heard.append(app), object()):
        value_of(world.run("digest"))
    assert heard == []


def test_log_records_carry_action_job_slot_and_run(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_cronlock")

    @world.cron.job("good", every=LONG)
    def good(run: Run) -> None:
        run.log.info("at work", extra={"part": 7})

    world.cron.job("bad", every=LONG)(lambda: 1 / 0)
    outcomes = [world.run("good"), world.run("good"), world.run("bad")]

    records = [record.__dict__ for record in caplog.records]
    ours = [record for record in records if record["name"] == "flask_cronlock"]
    assert [record["action"] for record in ours] == [
        *("job_started", "job_succeeded", "job_skipped", "job_started", "job_failed"),
    ]
    assert [record["job"] for record in ours] == ["good"] * 3 + ["bad"] * 2
    assert {record["slot"] for record in ours} == {outcomes[0].slot.isoformat()}  # type: ignore[union-attr]
    assert ours[0]["run"] == ours[1]["run"] == str(outcomes[0].run_id)
    assert ours[4]["run"] == str(outcomes[2].run_id)
    assert ours[4]["levelno"] == logging.ERROR
    assert ours[4]["exc_info"] is not None
    [of_the_job] = [record for record in records if record["name"] == "flask_cronlock.job"]
    assert (of_the_job["job"], of_the_job["part"]) == ("good", 7)
    assert of_the_job["run"] == str(outcomes[0].run_id)
