"""A secret is in no log, record, answer, output or repr, whatever went wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from flask import request

from flask_cronlock import job_failed, job_started
from flask_cronlock.state import this_state

from ..support.endpoint import body_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

OLD = "the-old-secret-of-2025"
HARD = 'it\'s-a-"hard"-secret-\\-é'


def raise_headers() -> None:
    raise ValueError(f"the headers were {dict(request.headers)}")


def raise_plainly() -> None:
    raise ValueError(f"Bearer {HARD}")


def raise_cause() -> None:
    try:
        raise_plainly()
    except ValueError as error:
        raise RuntimeError("failed because of another") from error


def raise_context() -> None:
    try:
        raise_plainly()
    except ValueError:
        raise RuntimeError("failed on the way") from None


def raise_note() -> None:
    error = ValueError("failed")
    error.add_note(f"sent {HARD!a}")
    raise error


def raise_group() -> None:
    raise ExceptionGroup("several", [ValueError(HARD), ValueError(repr(HARD))])


def raise_late() -> None:
    raise ValueError("x" * 970 + HARD)


def parts(secret: str) -> list[str]:
    """Return forms and pieces of *secret* that must not be seen."""
    latin, escaped = secret.encode().decode("latin-1"), json.dumps(secret)[1:-1]
    return [secret, secret[:9], latin, ascii(secret)[1:-1], escaped]


def assert_unseen(text: str) -> None:
    assert not [part for part in parts(HARD) if part in text], text


@pytest.fixture
def guarded(make_world: Callable[..., World]) -> World:
    return make_world(CRONLOCK_SECRET=[OLD, HARD])


def post_hard(world: World, name: str) -> Any:
    # A header's bytes are handed to the app as latin-1.
    return world.post(name, secret=HARD.encode().decode("latin-1"))


@pytest.mark.parametrize(
    "work",
    [
        raise_headers,
        raise_plainly,
        raise_cause,
        raise_context,
        raise_note,
        raise_group,
        raise_late,
    ],
)
def test_a_secret_in_an_error_is_in_no_log_no_record_and_no_answer(
    guarded: World, caplog: pytest.LogCaptureFixture, work: Callable[[], None]
) -> None:
    guarded.cron.job("x")(work)

    with caplog.at_level(logging.DEBUG):
        response = post_hard(guarded, "x")
        cli = guarded.app.test_cli_runner().invoke(args=["cron", "run", "x", "--json"])

    assert response.status_code == 500
    assert cli.exit_code == 1
    (_, error), *_ = guarded.attempts()
    for text in (caplog.text, error, cli.output, str(response.headers), response.text):
        assert_unseen(text)
    for record in caplog.records:
        assert_unseen(str(vars(record)))


def test_a_secret_that_a_job_returns_is_neither_told_nor_kept(
    guarded: World, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.cron.job("x")(lambda: dict(request.headers) if request else {})

    with caplog.at_level(logging.DEBUG):
        response = post_hard(guarded, "x")

    assert body_of(response)["outcome"] == "ran"
    assert "[secret]" in response.text
    for text in (response.text, guarded.database.value("SELECT value FROM cronlock_run")):
        assert_unseen(text)
    assert_unseen(caplog.text)


@pytest.mark.parametrize("signal", [job_started, job_failed])
def test_a_secret_in_a_subscribers_error_is_in_no_log(
    guarded: World, caplog: pytest.LogCaptureFixture, signal: Any
) -> None:
    def subscriber(sender: Any, **about: Any) -> None:
        raise_cause()

    guarded.cron.job("x")(raise_plainly)

    with signal.connected_to(subscriber, sender=guarded.app), caplog.at_level(logging.DEBUG):
        post_hard(guarded, "x")

    assert "A subscriber of" in caplog.text
    assert_unseen(caplog.text)


@pytest.mark.parametrize(
    "command", [["list"], ["list", "--json"], ["holders"], ["urls"], ["urls", "--json"], ["--help"]]
)
def test_a_secret_is_in_the_output_of_no_command(guarded: World, command: list[str]) -> None:
    guarded.cron.job("x")(guarded.mark)

    result = guarded.app.test_cli_runner().invoke(args=["cron", *command])

    assert result.exit_code == 0
    assert_unseen(result.output)
    assert OLD not in result.output


def test_a_secret_is_in_no_repr(guarded: World) -> None:
    with guarded.app.app_context():
        shown = [guarded.cron, guarded.app.extensions["cronlock"], this_state()]

    for thing in shown:
        assert_unseen(repr(thing))
        assert OLD not in repr(thing)
