"""Python's clock frozen, as test libraries do it: with and without the manual clock."""

from __future__ import annotations

import datetime as datetimes
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flask_cronlock import Run
from flask_cronlock.testing import manual_clock

from ..support.outcomes import value_of
from ..support.slots import at
from ..support.time_travel import Recorder, instants, keys, slots_of, stamps
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

FROZEN = at("2024-02-29T23:59:59Z")


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True, CRONLOCK_EARLY=0)


class _AnyDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class FrozenDatetime(datetime, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return FROZEN.astimezone(tz) if tz else FROZEN.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        return FROZEN.replace(tzinfo=None)


@contextmanager
def frozen() -> Iterator[None]:
    """Let Python's clocks stand still, for the package and all that it asks for the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", FROZEN.timestamp)
        patch.setattr(time, "time_ns", lambda: int(FROZEN.timestamp()) * 10**9)
        patch.setattr(datetimes, "datetime", FrozenDatetime)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "flask_cronlock" and hasattr(module, "datetime"):
                patch.setattr(module, "datetime", FrozenDatetime)
        yield


def test_frozen_python_time_changes_no_slot_and_no_stamp(world: World) -> None:
    runs: list[Run] = []
    world.cron.job("x", every="1s", max_lateness="1h")(lambda run: runs.append(run))
    world.cron.job("y", every="1s", max_lateness="1h")(lambda: 1 / 0)
    before = world.database.value("SELECT clock_timestamp()")

    with frozen():
        assert datetimes.datetime.now(UTC) == FROZEN
        value_of(world.run("x"))
        world.run("y")
        answer = world.post("x").json

    after = world.database.value("SELECT clock_timestamp()")
    second = timedelta(seconds=1)
    assert all(before <= stamp <= after for stamp in stamps(world))
    assert all(before <= run.started_at <= after for run in runs)
    assert all(run.slot and before - second <= run.slot <= after for run in runs)
    assert before - second <= datetime.fromisoformat(answer["slot"]) <= after
    assert len(world.attempts()) == 1


def test_with_the_manual_clock_slot_and_stamps_are_of_the_frozen_moment(world: World) -> None:
    job = Recorder(world, schedule="* * * * *")

    with frozen(), manual_clock(world.app, FROZEN) as clock:
        value_of(world.run("x"))
        assert stamps(world) == {FROZEN}
        clock.tick("2s")
        assert slots_of(clock.fire()) == instants("2024-03-01T00:00Z")

    assert job.slots == instants("2024-02-29T23:59Z", "2024-03-01T00:00Z")
    assert keys(world) == ["2024-02-29T23:59Z", "2024-03-01T00:00Z"]
    assert stamps(world) == {FROZEN, FROZEN + timedelta(seconds=2)}
    rows = world.database.query("SELECT started_at, finished_at FROM cronlock_run")
    assert all(started == finished for started, finished in rows)
