"""Whatever a job returns, it ran; whatever it raises, it failed; and no more is told of either."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given

from flask_cronlock.texts import LONGEST_ERROR, LONGEST_VALUE, error_text, value_text

from ..support.databases import Database
from ..support.endpoint import body_of
from ..support.fuzz import cases, nothing_left
from ..support.fuzz_values import Disguised, Noted, errors, values
from ..support.worlds import SECRET, World, world_on


class Nameless(type):
    """A kind of classes that do not tell their names."""

    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class Nobody(Exception, metaclass=Nameless):
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Job:
    """The job ``x``; each test gives it its work."""

    work: Callable[[], Any]

    def __call__(self) -> Any:
        return self.work()


class Log(logging.Handler):
    """All that was logged since it was last emptied, as an app's log would show it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def job() -> Job:
    return Job()


@pytest.fixture(scope="module")
def world(module_database: Database, job: Job) -> Iterator[World]:
    with world_on(module_database) as made:
        made.cron.job("x")(job)
        made.cron.job("hit")(made.mark)
        with nothing_left(made, lambda: made.post("hit")):
            yield made


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    handler = Log()
    logger = logging.getLogger("flask_cronlock")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@cases(120)
@given(value=values)
@example(value=Disguised())
def test_whatever_is_returned_is_a_run_that_is_kept_and_told(
    world: World, job: Job, value: Any
) -> None:
    job.work = lambda: value

    response = world.post("x")

    assert response.status_code == 200, response.text
    body = body_of(response)
    assert body["outcome"] == "ran"
    state, kept = world.probe.execute(
        "SELECT state, value FROM cronlock_run WHERE id = %s", [body["run"]]
    ).fetchone()  # type: ignore[misc]
    assert state == "done"
    assert len(kept) <= LONGEST_VALUE
    assert json.dumps(json.loads(kept)) == json.dumps(body["processed"])
    assert SECRET not in kept
    assert SECRET not in response.text


@cases(120)
@given(error=errors)
@example(error=Noted("x"))
def test_whatever_is_raised_is_a_failure_that_is_kept_and_logged_and_not_told(
    world: World, job: Job, log: Log, error: BaseException
) -> None:
    def raise_it() -> None:
        world.note("undone")
        raise error

    job.work = raise_it
    log.lines.clear()

    response = world.post("x")

    assert response.status_code == 500
    body = body_of(response)
    assert (body["error"], body["outcome"]) == ("Job failed", "failed")
    (kept,) = world.probe.execute(
        "SELECT error FROM cronlock_attempt WHERE id = %s", [body["run"]]
    ).fetchone()  # type: ignore[misc]
    assert len(kept) <= LONGEST_ERROR
    assert kept.isprintable()
    assert [line for line in log.lines if body["run"] in line]
    for text in (kept, response.text, *log.lines):
        assert SECRET not in text
    assert "undone" not in world.notes


def test_what_has_neither_a_name_nor_words_is_told_all_the_same() -> None:
    assert value_text(Nobody()) == '"<object>"'
    assert error_text(Nobody("lost")) == "Error: lost"
