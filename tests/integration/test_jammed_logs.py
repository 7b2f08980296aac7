"""A log that raises changes nothing of a run that is over, and is printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flask_cronlock import job_failed, job_skipped, job_succeeded

from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World

LOGGER = logging.getLogger("flask_cronlock")


@contextmanager
def jammed(action: str) -> Iterator[None]:
    """Let every record of *action* raise."""

    def jam(record: logging.LogRecord) -> bool:
        if record.__dict__.get("action") == action:
            raise ValueError("of the filter's")
        return True

    LOGGER.addFilter(jam)
    try:
        yield
    finally:
        LOGGER.removeFilter(jam)


def fail(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


@pytest.fixture
def world(world: World, caplog: pytest.LogCaptureFixture) -> World:
    caplog.set_level(logging.INFO, "flask_cronlock")
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))
    world.cron.job("bad", every=LONG)(fail)
    return world


@pytest.mark.parametrize(
    ("action", "told", "signal"),
    [
        ("job_succeeded", "ran", job_succeeded),
        ("job_skipped", "skipped", job_skipped),
        ("job_failed", "failed", job_failed),
    ],
)
def test_the_outcome_stands_and_its_signal_is_sent(
    world: World, capsys: pytest.CaptureFixture[str], action: str, told: str, signal: Any
) -> None:
    if told == "skipped":
        value_of(world.run("digest"))
    heard: list[str] = []

    def hear(*_: Any, **__: Any) -> None:
        heard.append(told)

    with jammed(action), signal.connected_to(hear, world.app):
        response = world.post("bad" if told == "failed" else "digest")

    assert response.json["outcome"] == told
    assert world.notes == ["sent"] * (told != "failed")
    assert heard == [told]
    assert "of the filter's" in capsys.readouterr().err


def test_a_subscriber_that_fails_then_takes_no_outcome_along(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with jammed("subscriber_failed"), job_succeeded.connected_to(fail, world.app):
        value_of(world.run("digest"))

    assert world.notes == ["sent"]
    assert "of the filter's" in capsys.readouterr().err


def test_an_attempt_that_cannot_be_recorded_then_leaves_the_error_of_the_job(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.database.query("ALTER TABLE cronlock_attempt RENAME TO gone")
    try:
        with jammed("attempt_not_recorded"):
            assert isinstance(error_of(world.run("bad")), ZeroDivisionError)
    finally:
        world.database.query("ALTER TABLE gone RENAME TO cronlock_attempt")

    assert "of the filter's" in capsys.readouterr().err
