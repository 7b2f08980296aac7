"""Which slots of a job may still be run, and which have been missed: pure functions of an instant.

Nothing is stored and nothing looks back a fixed time: what the schedule names and no row claims is
due, as far as the job's policy goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from .jobs import CatchUp, Job
from .schedule import Schedule, Slot

MOST_MISSED = 100
"""How many missed slots one run records at most; older ones are left out."""


def is_too_late(job: Job, schedule: Schedule, slot: Slot, clock: datetime) -> bool:
    """Tell whether the time of *slot* is over.

    It is over ``max_lateness`` after its time, else when the next one begins. Where every slot is
    caught up, it is over once ``max_catch_up`` newer ones have begun.
    """
    if job.max_lateness is not None and clock - slot.at.astimezone(UTC) > job.max_lateness:
        return True
    if job.catch_up is CatchUp.ALL:
        return slot.at.astimezone(UTC) < oldest_of(schedule, clock, job.max_catch_up)
    return job.max_lateness is None and schedule.next(slot.at).at.astimezone(UTC) <= clock


def oldest_of(schedule: Schedule, clock: datetime, count: int) -> datetime:
    """Return the time of the oldest among the newest *count* slots."""
    slots = list(newest_first(schedule, schedule.newest(clock), count))
    return slots[-1].at.astimezone(UTC) if slots else clock


def newest_first(schedule: Schedule, slot: Slot | None, count: int) -> Iterator[Slot]:
    """Yield *slot* and those before it, at most *count*."""
    while slot is not None and count > 0:
        yield slot
        slot, count = schedule.previous(slot), count - 1


def slots_due(
    job: Job, schedule: Schedule, clock: datetime, after: datetime | None = None
) -> list[Slot]:
    """Return the slots later than *after* that may still be run at *clock*, oldest first.

    Which of them are claimed is for the ledger to say.
    """
    most = job.max_catch_up if job.catch_up is CatchUp.ALL else 1
    due: list[Slot] = []
    for slot in newest_first(schedule, schedule.newest(clock), most):
        at = slot.at.astimezone(UTC)
        if after is not None and at <= after:
            break
        if job.max_lateness is not None and clock - at > job.max_lateness:
            break
        due.append(slot)
    return due[::-1]


def slots_missed(
    job: Job, schedule: Schedule, slot: Slot, clock: datetime, since: datetime
) -> list[Slot]:
    """Return the slots between *since* and *slot* that nobody will run any more, newest first."""
    missed: list[Slot] = []
    still_due = job.max_catch_up if job.catch_up is CatchUp.ALL else 0
    end = oldest_of(schedule, clock, still_due) if still_due else slot.at.astimezone(UTC)
    for earlier in newest_first(schedule, schedule.previous(slot), MOST_MISSED + still_due):
        if earlier.at.astimezone(UTC) <= since:
            break
        if earlier.at.astimezone(UTC) < end:
            missed.append(earlier)
    return missed[:MOST_MISSED]
