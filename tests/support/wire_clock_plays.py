"""What a clock does that is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from flask import Flask
from sqlalchemy.exc import DBAPIError

from flask_cronlock import Outcome
from flask_cronlock.exceptions import CronLockError
from flask_cronlock.signals import job_failed, job_skipped, job_succeeded

from .clocks import hands_of, know_jobs, lookout_of, ticking
from .processes import wait_until
from .wire_plays import START, Play, Told
from .worlds import World


class FirstLook(Play):
    """A clock comes to know a job."""

    name = "clock's first look"
    job = "known"
    settles = False

    @contextmanager
    def set(self) -> Iterator[None]:
        self.world.probe.execute("DELETE FROM cronlock_job")
        self.lookout = lookout_of(self.world)
        yield
        self.lookout.read_anew()

    def tell(self) -> Told:
        """Look, as a clock does, which tries again after whatever error."""
        try:
            self.lookout.look(0.0)
        except (CronLockError, DBAPIError):
            return Told.UNKNOWN
        return Told.KEPT

    def kept(self) -> int:
        return self.count(
            "SELECT count(*) FROM cronlock_job WHERE job = %s AND known_since IS NOT NULL", self.job
        )

    def check_told(self, told: Told, before: int) -> None:
        """What a look that ended well has learnt is written down."""
        assert told is not Told.KEPT or self.kept() == 1

    def check(self) -> None:
        """It has no run yet."""


class ClockRun(Play):
    """A clock in a thread comes to the slot; the clean retry is a hit.

    Time stands at the slot, so that the clock, once it has failed, does not come to it again.
    """

    name = "clock's run"
    job = "clocked"
    fires = False

    def __init__(self, world: World, suffix: str = "") -> None:
        super().__init__(world, suffix)
        know_jobs(world, START)
        self.heard: list[Outcome] = []
        for signal in (job_succeeded, job_skipped, job_failed):
            signal.connect(self._hear, world.app)

    def _hear(self, _: Flask, outcome: Outcome, **about: object) -> None:
        self.heard.append(outcome)

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        with hands_of(self.slot + timedelta(seconds=1), self.world):
            self.fires = True
            yield
            self.fires = False

    def tell(self) -> Told:
        """Let a clock run until it has told of the slot, or that it cannot."""
        if not self.fires:
            return super().tell()
        self.heard.clear()
        with ticking(self.world) as clocks:
            could_not = "clock_waits", "clock_failed"
            wait_until(lambda: self.heard or any(clocks.log.of(why) for why in could_not))
        return self.told_by(self.heard[-1]) if self.heard else Told.NOTHING
