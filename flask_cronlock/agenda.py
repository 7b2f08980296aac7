"""What a clock has to do: for each job the slots that are open, and when it is to look again.

Pure bookkeeping over the schedules. It decides nothing: what it names is put to the ledger, and
what the ledger calls open is run through the same claim as any hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .catchup import slots_due
from .jobs import CatchUp, Job
from .schedule import Schedule, Slot

PUNCTUAL = timedelta(minutes=1)
"""A slot that the clock comes to later than this has been missed by a job that catches up none."""
STEPPED_BACK = timedelta(seconds=1)


@dataclass(eq=False)
class Entry:
    """One job's page of the agenda."""

    job: Job
    schedule: Schedule
    known_since: datetime
    """Nothing before this is caught up."""
    read_until: datetime
    """Up to here the schedule has been read."""
    next_at: datetime = field(init=False)
    slots: list[Slot] = field(default_factory=list)
    """Those that may be open, oldest first."""
    busy: bool = False
    """Whether one of them is being run here."""
    elsewhere: bool = False
    """Whether one of them was running elsewhere when last seen."""
    wait_until: float = 0
    """By the process's own clock: nothing is tried before, unless a new slot begins."""

    def begin(self, clock: datetime) -> None:
        """Read the schedule up to *clock*, as far back as it is to be caught up."""
        self.slots = []
        self.read_until = clock if self.job.catch_up is CatchUp.NONE else self.known_since
        self.read(clock)

    def read(self, clock: datetime) -> None:
        """Read the schedule on to *clock*."""
        after = max(self.read_until, self.known_since)
        fresh = slots_due(self.job, self.schedule, clock, after)
        if self.job.catch_up is CatchUp.NONE:
            fresh = [slot for slot in fresh if clock - slot.at.astimezone(UTC) <= PUNCTUAL]
        if fresh:
            most = self.job.max_catch_up if self.job.catch_up is CatchUp.ALL else 1
            self.slots = [*self.slots, *fresh][-most:]
            if not self.elsewhere:
                self.wait_until = 0
        self.read_until = clock
        self.next_at = self.schedule.next(clock).at.astimezone(UTC)

    def settle(self, slot: Slot) -> None:
        """Strike out *slot*: it ran, or is over."""
        self.slots = [other for other in self.slots if other.key != slot.key]


class Agenda:
    """The entries of all jobs that have slots.

    :param known_since: for each job's identity, when a clock first saw it with this schedule.
    """

    def __init__(
        self,
        jobs: Iterable[tuple[Job, Schedule]],
        known_since: Mapping[str, datetime],
        clock: datetime,
    ) -> None:
        self.clock = clock
        self.entries = [
            Entry(job, schedule, known_since[job.identity], clock) for job, schedule in jobs
        ]
        for entry in self.entries:
            entry.begin(clock)

    def read(self, clock: datetime, anew: bool = False) -> None:
        """Read all schedules on to *clock*; or *anew*, as where it was turned back.

        What no row claimed yet when the ledger was last asked may have been claimed and lost since.
        """
        turned_back = clock < self.clock - STEPPED_BACK
        self.clock = clock
        for entry in self.entries:
            if turned_back:
                entry.known_since = min(entry.known_since, clock)
                entry.begin(clock)
            elif anew and entry.job.catch_up is not CatchUp.NONE:
                entry.begin(clock)
            elif entry.next_at <= clock:
                entry.read(clock)

    def open_at(self, now: float) -> list[Entry]:
        """Return the entries with something to try at *now*, by the process's own clock."""
        return [e for e in self.entries if e.slots and not e.busy and e.wait_until <= now]

    def seconds(self, read_at: float, now: float) -> float:
        """Return how long there is nothing to do, :attr:`clock` having been read at *read_at*."""
        idle = [entry for entry in self.entries if not entry.busy]
        waits = [entry.wait_until - now for entry in idle if entry.slots]
        ahead = min([entry.next_at for entry in idle], default=None)
        if ahead is not None:
            waits.append((ahead - self.clock).total_seconds() + read_at - now)
        return max(0.0, min(waits, default=float("inf")))
