"""A job that leaves an answer unread keeps neither its thread nor its lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from flask_cronlock import Ran
from flask_cronlock.exceptions import LockLost

from ..support.outcomes import error_of
from ..support.worlds import World

ROWS = "SELECT generate_series(1, 100000)"
Driver = psycopg.Connection[Any]


def stream(driver: Driver) -> Any:
    rows = driver.cursor().stream(ROWS)
    next(iter(rows))
    return rows


def copy(driver: Driver) -> Any:
    copying = driver.cursor().copy(f"COPY ({ROWS}) TO STDOUT")
    next(iter(copying.__enter__()))
    return copying


def pipeline(driver: Driver) -> Any:
    pipe = driver.pipeline()
    pipe.__enter__()
    driver.execute("SELECT 1")
    return pipe


def idle_pipeline(driver: Driver) -> Any:
    pipe = driver.pipeline()
    pipe.__enter__()
    return pipe


LEFT_OPEN = pytest.mark.parametrize("leave_open", [stream, copy, pipeline, idle_pipeline])


def add_job(world: World, leave_open: Callable[[Driver], Any], *errors: Exception) -> None:
    """Register a job that leaves an answer unread once, and then raises what is in *errors*."""
    left: list[Any] = []

    @world.cron.job("digest", every="1d")
    def digest() -> None:
        world.note("once" if left else "unread")
        if left:
            return
        driver = world.db.session.connection().connection.driver_connection
        left.append(leave_open(driver))
        for error in errors:
            raise error


def assert_open_and_free(world: World) -> None:
    """Check that the failed attempt alone was kept, and that the slot can run."""
    assert world.notes == []
    assert len(world.attempts()) == 1
    assert world.database.advisory_locks() == 0
    assert isinstance(world.run("digest"), Ran)
    assert world.notes == ["once"]


@LEFT_OPEN
def test_a_job_that_returns_fails_with_the_cure(world: World, leave_open: Any) -> None:
    add_job(world, leave_open)

    error = error_of(world.run("digest"))

    assert isinstance(error, LockLost)
    assert "end each in a `with`" in str(error)
    assert_open_and_free(world)


@LEFT_OPEN
def test_a_job_that_raises_fails_with_what_it_raised(world: World, leave_open: Any) -> None:
    add_job(world, leave_open, ValueError("bad row"))

    assert isinstance(error_of(world.run("digest")), ValueError)
    assert_open_and_free(world)
