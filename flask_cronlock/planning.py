"""A wish to run a job, and the run that it becomes once the database's clock is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .catchup import is_too_late, slots_missed
from .config import Config
from .exceptions import SlotError
from .instance import with_pid
from .jobs import CatchUp, Job
from .limits import LOCK_WAIT
from .policy import choose_slot
from .run import Run
from .schedule import Schedule, Slot


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
        self._slot: Slot | None = None

    def make_run(self, clock: datetime) -> Run:
        """Return the run for *clock*, the database's.

        A forced run uses up no slot: it has a slot's time, but no key to claim.
        """
        run = Run(
            job=self.job.name,
            names=self.job.names,
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
        self._slot = slot
        before = schedule.previous(slot)
        run.slot, run.slot_key = slot.at, None if self.force else slot.key
        run.previous_slot = before.at if before else None
        run.next_slot = schedule.next(slot.at).at
        return run

    def is_too_late(self, run: Run) -> bool:
        """Tell whether the slot of *run* is over; a forced run is never too late."""
        if self.force or self._schedule is None or self._slot is None:
            return False
        return is_too_late(self.job, self._schedule, self._slot, run.started_at)

    def look_back(self, run: Run, last_ran: datetime | None, since: datetime | None) -> list[Slot]:
        """Set what came before the slot of *run*, and return the slots that were missed.

        Over a run of successes no time is left out and none is handed out twice: a run takes all
        since the last one that ran, but what older slots will still be run for.
        """
        schedule, slot = self._schedule, self._slot
        if schedule is None or slot is None:
            return []
        before = schedule.previous(slot)
        if last_ran is not None and not self._runs_alone(schedule, before, run.started_at, since):
            run.previous_slot = last_ran.astimezone(slot.at.tzinfo)
        counted = [moment.astimezone(UTC) for moment in (last_ran, since) if moment is not None]
        if self.force or not counted:
            return []
        return slots_missed(self.job, schedule, slot, run.started_at, max(counted))

    def _runs_alone(
        self, schedule: Schedule, before: Slot | None, clock: datetime, since: datetime | None
    ) -> bool:
        """Tell whether the slot *before* has, or will have, a run of its own.

        Only a clock makes one, and only later than *since*.
        """
        if before is None or since is None or self.job.catch_up is not CatchUp.ALL:
            return False
        if before.at.astimezone(UTC) <= since:
            return False
        return not is_too_late(self.job, schedule, before, clock)
