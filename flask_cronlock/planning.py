"""A wish to run a job, and the run that it becomes once the database's clock is known."""

from __future__ import annotations

from datetime import datetime, timedelta

from .config import Config
from .exceptions import SlotError
from .instance import with_pid
from .jobs import Job
from .limits import LOCK_WAIT
from .policy import choose_slot, is_too_late
from .run import Run


class Plan:
    """What is to be run, for whom, and within which time."""

    def __init__(
        self,
        job: Job,
        config: Config,
        app_name: str,
        trigger: str,
        named: datetime | None,
        force: bool,
    ) -> None:
        self.job, self.trigger, self.force, self._named = job, trigger, force, named
        self.timeout: timedelta = job.timeout or config.timeout
        self.lock_wait = min(LOCK_WAIT, self.timeout / 2)
        self.instance = with_pid(config.instance)
        self._config, self._app_name = config, app_name
        self._schedule = job.schedule(config.timezone)

    def make_run(self, clock: datetime) -> Run:
        """Return the run for *clock*, the database's.

        A forced run uses up no slot: it has a slot's time, but no key to claim.
        """
        run = Run(
            job=self.job.name,
            identity=self.job.identity,
            namespace=self._config.namespace,
            trigger=self.trigger,
            forced=self.force,
            instance=self.instance,
            app=self._app_name,
            started_at=clock,
        )
        schedule = self._schedule
        if schedule is None:
            if self._named is not None:
                raise SlotError(f"{self.job.name!r} has no schedule, and so no slots")
            return run
        slot = choose_slot(self.job, schedule, self._named, clock, self._config.early)
        before = schedule.previous(slot)
        run.slot, run.slot_key = slot.at, None if self.force else slot.key
        run.previous_slot = before.at if before else None
        run.next_slot = schedule.next(slot.at).at
        return run

    def is_too_late(self, run: Run) -> bool:
        """Tell whether the slot of *run* is over; a forced run is never too late."""
        if self.force or run.slot is None or run.next_slot is None:
            return False
        return is_too_late(self.job, run.slot, run.next_slot, run.started_at)
