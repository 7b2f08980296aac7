"""A failed run leaves its attempt record, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flask_cronlock import Failed, Ran, Reason, Skipped
from flask_cronlock.texts import LONGEST_ERROR

from ..support.databases import Database
from ..support.outcomes import LONG, error_of, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Final(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (ValueError("as asked"), "ValueError: as asked"),
        (ValueError("one\ntwo"), "ValueError: one"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * (LONGEST_ERROR - 13) + "…"),
        (ValueError("a\0b\ud800c"), r"ValueError: a\x00b\ud800c"),
        (Mute(), "Mute: (its text could not be had)"),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=["short", "lines", "long", "unprintable", "mute", "exit"],
)
def test_an_error_is_recorded_and_the_slot_stays_open(
    world: World, error: BaseException, kept: str
) -> None:
    errors = [error]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("written")
        if errors:
            raise errors.pop()

    outcome = world.run("digest")

    assert error_of(outcome) is error
    assert world.attempts() == [("digest", kept)]
    assert world.notes == world.runs() == []
    value_of(world.run("digest"))
    assert world.notes == ["written"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_a_process_is_recorded_and_raised(world: World, error: BaseException) -> None:
    errors = [error]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("written")
        if errors:
            raise errors.pop()

    with pytest.raises(type(error)):
        world.run("digest")

    assert [job for job, _ in world.attempts()] == ["digest"]
    assert world.notes == world.runs() == []
    value_of(world.run("digest"))


def test_an_attempt_tells_what_it_was(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest(run: Any) -> None:
        raise ValueError

    outcome = world.run("digest")

    assert isinstance(outcome, Failed)
    assert outcome.slot is not None
    [about] = world.database.query(
        "SELECT id, job, scheduled_at, trigger, forced, instance, app, started_at <= finished_at"
        " FROM cronlock_attempt"
    )
    assert about == (
        *(outcome.run_id, "digest", outcome.slot, "manual", False, outcome.instance),
        *("world", True),
    )


def test_every_attempt_is_recorded(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: 1 / 0)
    for _ in range(3):
        error_of(world.run("digest"))
    assert len(world.attempts()) == 3


def test_an_error_that_is_its_own_cause_is_no_trap(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        error = ValueError("round")
        raise error from error

    assert isinstance(error_of(world.run("digest")), ValueError)


def test_a_failed_attempt_that_cannot_be_recorded_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        raise ValueError("as asked")

    world.database.query("DROP TABLE cronlock_attempt")

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert "attempt_not_recorded" in [r.__dict__.get("action") for r in caplog.records]


def test_a_job_that_raises_is_a_500_that_says_no_more(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        raise ValueError("a private matter")

    answer = world.post("digest")

    assert (answer.status_code, answer.json["error"]) == (500, "Job failed")
    assert b"private" not in answer.data
    assert answer.json["run"] == str(world.database.value("SELECT id FROM cronlock_attempt"))


def run_paused(world: World) -> Any:
    world.database.query(
        "INSERT INTO cronlock_job (namespace, job, paused_at) VALUES ('', 'digest', now())"
    )
    return world.run("digest")


def run_switched_off(world: World) -> Any:
    return world.run("digest")


@pytest.mark.parametrize(("run", "enabled"), [(run_paused, True), (run_switched_off, False)])
def test_a_paused_job_is_skipped_and_nothing_is_written(
    make_world: Callable[..., World],
    database: Database,
    run: Callable[[World], Any],
    enabled: bool,
) -> None:
    world = make_world(CRONLOCK_ENABLED=enabled)
    world.cron.job("digest", every=LONG)(world.mark)

    assert reason_of(run(world)) is Reason.PAUSED
    assert world.marks == 0
    assert world.runs() == world.attempts() == []


def test_outcomes_are_made_for_match(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: 3)
    words = []
    for _ in range(2):
        match world.run("digest"):
            case Ran(value):
                words.append(f"ran {value}")
            case Skipped(reason):
                words.append(f"skipped, {reason}")
            case Failed(error):
                words.append(f"failed {error}")
    assert words == ["ran 3", "skipped, already ran"]


@pytest.mark.parametrize(
    "error", [Final(), BaseExceptionGroup("both", [Final()]), asyncio.CancelledError()]
)
def test_what_no_except_exception_catches_is_an_answer_all_the_same(
    world: World, error: BaseException
) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        raise error

    response = world.post("digest")

    assert (response.status_code, response.get_json()["error"]) == (500, "Job failed")
    assert world.app.test_cli_runner().invoke(args=["cron", "run", "digest"]).exit_code == 1
