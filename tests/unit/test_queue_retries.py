"""When a row is due again that a worker has not brought to its end."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate
import pytest
from procrastinate.jobs import Job

from flask_cronlock.queue.heart import Heart
from flask_cronlock.queue.retries import MOST_BROKEN, Retries
from flask_cronlock.queue.work import GivenUp, Redeliver, UnknownHere

HOUR = timedelta(hours=1)


@pytest.fixture
def heart() -> Heart:
    return Heart(procrastinate.PsycopgConnector())


@pytest.fixture
def retries(heart: Heart) -> Retries:
    return Retries(heart, [b"p4ssw0rd"])


def row(attempts: int = 0, number: int = 1) -> Job:
    about: dict[str, Any] = {"lock": None, "queueing_lock": None, "task_name": "task"}
    return Job(id=number, queue="default", attempts=attempts, **about)


def due(retries: Retries, error: Exception, job: Job) -> datetime | None:
    decision = retries.get_retry_decision(exception=error, job=job)
    if decision is None:
        return None
    assert isinstance(decision.retry_at, datetime)
    return decision.retry_at


def test_it_is_due_when_the_work_says_so_or_never(retries: Retries) -> None:
    at = due(retries, Redeliver(HOUR), row(attempts=10**6))
    assert at is not None
    assert abs(datetime.now(UTC) + HOUR - at) < HOUR / 2
    assert retries.get_retry_decision(exception=Redeliver(), job=row()) is not None
    assert due(retries, GivenUp(), row()) is None


def test_it_waits_by_the_databases_clock(retries: Retries, heart: Heart) -> None:
    heart.clock_ahead = -HOUR.total_seconds()
    at = due(retries, ValueError(), row())
    assert at is not None
    assert at < datetime.now(UTC) - HOUR / 2


def test_what_is_unknown_here_is_waited_for_later_and_later_and_never_given_up(
    retries: Retries,
) -> None:
    begun = datetime.now(UTC)
    found = [due(retries, UnknownHere("unknown"), row(attempts=10**6)) for _ in range(500)]
    waits = [(at - begun).total_seconds() for at in found if at is not None]
    assert len(waits) == 500
    assert waits[0] < 60 < 250 < waits[-1] < 1000


def test_a_row_that_breaks_the_workers_code_is_tried_later_and_later_and_then_given_up(
    retries: Retries,
) -> None:
    begun = datetime.now(UTC)
    # Its attempts have grown by what was no break.
    found = [due(retries, ValueError(), row(attempts=100)) for _ in range(MOST_BROKEN + 1)]
    assert found.pop() is None
    waits = [(at - begun).total_seconds() for at in found if at is not None]
    assert len(waits) == MOST_BROKEN
    assert waits[0] < 60 < 500 < waits[-1] < 700
    assert due(retries, ValueError(), row(number=2))


def test_what_broke_it_is_told_without_a_secret(
    retries: Retries, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        due(retries, ValueError("p4ssw0rd is wrong"), row())
    assert "row 1: " in caplog.text
    assert "is wrong" in caplog.text
    assert "p4ssw0rd" not in caplog.text
