"""More runs of jobs that are cut off: those that find something, and those that do not go well."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from flask_cronlock import Failed
from flask_cronlock.exceptions import BrokenSlot
from flask_cronlock.limits import REARM_AFTER

from .wire_plays import MINUTE, Planned, Play, Told
from .worlds import World

logger = logging.getLogger("flask_cronlock")


class AfterMissed(Play):
    """It also writes down two slots that were missed."""

    name = "winner after missed slots"
    job = "after-missed"
    step = 3

    def check(self) -> None:
        super().check()
        missed = self.count(
            "SELECT count(*) FROM cronlock_run WHERE job = %s AND state = 'missed'"
            " AND scheduled_at BETWEEN %s AND %s",
            *(self.job, self.slot - self.step * MINUTE, self.slot),
        )
        assert missed == (2 if self.kept() and self.number > 1 else 0)


class AlreadyRan(Play):
    name = "already ran"
    job = "already-ran"
    ends = Told.NOTHING

    def __init__(self, world: World, suffix: str = "") -> None:
        super().__init__(world, suffix)
        self.act()

    @contextmanager
    def set(self) -> Iterator[None]:
        yield


class AlreadyRunning(Play):
    """Another session has the lock, and lets it go for the clean retry."""

    name = "already running"
    job = "already-running"
    ends = Told.NOTHING

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        with self.world.database.connect() as other:
            other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [self.job])
            yield
            other.execute("SELECT pg_advisory_unlock_all()")


class Failing(Play):
    """The job raises, but not in the clean retry."""

    name = "failing job"
    job = "failing"
    ends = Told.NOTHING
    fails = False
    unrecorded = False
    outcome: Any = None

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        self.fails, self.unrecorded, self.outcome = True, False, None
        logger.addFilter(self._hear)
        yield
        logger.removeFilter(self._hear)
        self.fails = False

    def _hear(self, record: logging.LogRecord) -> bool:
        self.unrecorded |= getattr(record, "action", "") == "attempt_not_recorded"
        return True

    def work(self) -> None:
        super().work()
        if self.fails:
            raise Planned

    def act(self) -> Any:
        self.outcome = super().act()
        return self.outcome

    def check_told(self, told: Told, before: int) -> None:
        """A failed attempt is recorded, or it is said that it is not."""
        super().check_told(told, before)
        attempts = self.count(
            "SELECT count(*) FROM cronlock_attempt WHERE job = %s AND scheduled_at = %s",
            *(self.job, self.slot),
        )
        assert attempts <= 1
        assert attempts or self.unrecorded or not isinstance(self.outcome, Failed)


class Forced(Play):
    name = "forced run"
    job = "forced"
    once = False
    how: ClassVar = {"force": True}


class Renamed(Play):
    """Its job had another name, by which the clean retry asks for it."""

    name = "winner that was renamed"
    job = "renamed"
    before = ("first-name",)
    called = ""

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        self.called = self.job
        yield
        self.called = self.identity

    def act(self) -> Any:
        return self.world.run(self.called, slot=self.slot)


class Broken(Play):
    """A run of the slot sent a raw COMMIT and did not end; the clean retry forces it."""

    name = "broken slot"
    job = "broken"
    ends = Told.NOTHING
    once = False
    forced = False

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        self.forced = False
        self._leave_claim()
        yield
        self.forced = True

    def _leave_claim(self) -> None:
        self.world.probe.execute(
            "INSERT INTO cronlock_run (id, namespace, job, slot_key, scheduled_at, state, trigger,"
            " forced, instance, app, started_at) VALUES (gen_random_uuid(), '', %s, %s, %s,"
            " 'running', 'http', false, 'web.1', 'world', clock_timestamp())",
            [self.job, f"{self.slot:%Y-%m-%dT%H:%M}Z", self.slot],
        )

    def act(self) -> Any:
        outcome = super().act()
        assert isinstance(outcome, Failed), outcome
        assert isinstance(outcome.error, BrokenSlot)
        return self.world.run(self.job, slot=self.slot, force=True) if self.forced else outcome

    def check(self) -> None:
        """What was left stays; once it was told of on a whole wire, it is written down."""
        first, *others = self.world.probe.execute(
            "SELECT state FROM cronlock_run WHERE job = %s AND scheduled_at = %s ORDER BY forced",
            [self.job, self.slot],
        ).fetchall()
        assert first[0] in (("broken",) if others else ("running", "broken"))
        assert others == [("done",)] * self.kept()


class Slow(Play):
    """It takes so long that what is left of its time is set anew, where the server needs that."""

    name = "winner whose limits are set anew"
    job = "slow"
    slow = False

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        self.slow = True
        yield
        self.slow = False

    def work(self) -> None:
        time.sleep(REARM_AFTER + 0.05 if self.slow else 0)
        super().work()
