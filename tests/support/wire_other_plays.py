"""What else than a job's run is cut off; and the list of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError

from flask_cronlock.exceptions import CronLockError

from .clocks import lookout_of
from .locking import locked
from .wire_plays import AfterMissed, AlreadyRan, AlreadyRunning, Failing, Forced, Play, Told


class WithLock(Play):
    name = "with_lock"
    job = "with-lock"
    once = False

    def act(self) -> Any:
        return locked(self.world, ("customer", self.number), lambda _: self.work())

    def check(self) -> None:
        """There is no ledger of locks."""


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


PLAYS: tuple[type[Play], ...] = (
    FirstLook,
    Play,
    AfterMissed,
    AlreadyRan,
    AlreadyRunning,
    Failing,
    Forced,
    WithLock,
)
"""The first is quickest where it knows no other's job."""
