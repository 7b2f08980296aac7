"""The manual clock by itself, without a database: where it is refused, and how it is moved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock
from flask_cronlock.exceptions import ConfigError, CronLockError, DatabaseUnreachable, DurationError
from flask_cronlock.state import this_state
from flask_cronlock.testing import ManualClock, manual_clock

from ..support.endpoint import unreachable

START = datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)
CURE = "give an aware datetime, or text with its offset"


@pytest.fixture(scope="module")
def app() -> Iterator[Flask]:
    """An app under test whose database cannot be reached."""
    db = SQLAlchemy()
    app = Flask("app")
    app.testing = True
    with unreachable() as url:
        app.config["SQLALCHEMY_DATABASE_URI"] = url
        db.init_app(app)
        CronLock(db, app)
        yield app


@pytest.fixture
def clock(app: Flask) -> ManualClock:
    with app.app_context():
        return ManualClock(app, this_state(), START)


def refusal(app: Flask, start: Any = START) -> CronLockError:
    with pytest.raises(CronLockError) as caught:
        manual_clock(app, start).__enter__()
    return caught.value


def test_it_is_refused_unless_the_app_is_being_tested(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "testing", False)
    error = refusal(app)
    assert isinstance(error, ConfigError)
    assert "set app.testing = True" in str(error)


def test_it_is_refused_for_an_app_that_was_not_set_up() -> None:
    stranger = Flask("stranger")
    stranger.testing = True
    error = refusal(stranger)
    assert isinstance(error, ConfigError)
    assert "init_app" in str(error)


def test_one_that_could_not_begin_is_not_left_in_place(app: Flask) -> None:
    for _ in range(2):
        assert isinstance(refusal(app), DatabaseUnreachable)


@pytest.mark.parametrize(
    "moment",
    [
        "2024-02-29T23:59:59",
        "2024-02-30T00:00Z",
        "0001-01-01T00:00+01:00",
        "soon",
        "",
        datetime(2024, 1, 1),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
        None,
        0,
        timedelta(days=1),
    ],
    ids=str,
)
def test_what_is_no_instant_is_refused_and_the_clock_stays_where_it_is(
    app: Flask, clock: ManualClock, moment: Any
) -> None:
    error = refusal(app, moment)
    assert isinstance(error, ConfigError)
    assert CURE in str(error)
    with pytest.raises(ConfigError, match=CURE):
        clock.move_to(moment)
    assert clock.now() == START


@pytest.mark.parametrize("step", [0, -1, "-1s", timedelta(-1), "1 second", None])
def test_it_ticks_ahead_only(clock: ManualClock, step: Any) -> None:
    with pytest.raises(DurationError, match="tick"):
        clock.tick(step)
    assert clock.now() == START


@pytest.mark.parametrize("step", ["2s", 2, 2.0, timedelta(seconds=2)])
def test_a_tick_is_any_duration(clock: ManualClock, step: Any) -> None:
    later = datetime(2024, 3, 1, 0, 0, 1, tzinfo=UTC)
    assert clock.tick(step) == clock.now() == later


def test_it_is_moved_ahead_and_back_to_a_moment_in_any_offset(clock: ManualClock) -> None:
    for moment in (
        "2024-03-01T07:00Z",
        "2024-02-29T08:00:00+01:00",
        datetime(2023, 1, 1, tzinfo=UTC).astimezone(timezone(timedelta(hours=5, minutes=45))),
    ):
        moved = clock.move_to(moment)
        expected = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        assert moved == clock.now() == expected
        assert moved.tzinfo is UTC


def test_ticks_of_many_threads_add_up(clock: ManualClock) -> None:
    def tick(_: int) -> None:
        for _ in range(500):
            clock.tick("1s")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(tick, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert clock.now() == START + timedelta(seconds=8 * 500)
