"""Which slots of a job may still be run, and which have been missed: pure functions of an instant.

Nothing is stored and nothing looks back a fixed time: what the schedule names and no row claims is
due, as far as the job's policy goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile

from .jobs import CatchUp, Job
from .schedule import Schedule, Slot

MOST_MISSED = 100
"""How many missed slots one run records at most; older ones are left out."""


def is_too_late(job: Job, schedule: Schedule, slot: Slot, clock: datetime) -> bool:
    """Tell whether the time of *slot* is over.

    It is over ``max_lateness`` after its time, else when the next one begins. Where every slot is
    caught up, it is over once ``max_catch_up`` newer ones have begun.
    """
    at = slot.at.astimezone(UTC)
    if job.max_lateness is not None and clock - at > job.max_lateness:
        return True
    if job.catch_up is CatchUp.ALL:
        newer = takewhile(
            lambda other: other.at.astimezone(UTC) > at,
            newest_first(schedule, schedule.newest(clock), job.max_catch_up),
        )
        return sum(1 for _ in newer) == job.max_catch_up
    return job.max_lateness is None and schedule.next(slot.at).at.astimezone(UTC) <= clock


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
    """Return the slots between *since* and *slot* that no run of their own is due for, newest
    first; at most :data:`MOST_MISSED`."""
    if job.catch_up is not CatchUp.ALL:
        earlier = newest_first(schedule, schedule.previous(slot), MOST_MISSED)
        return list(takewhile(lambda other: other.at.astimezone(UTC) > since, earlier))
    missed: list[Slot] = []
    all_slots = newest_first(schedule, schedule.newest(clock), job.max_catch_up + MOST_MISSED)
    for place, other in enumerate(all_slots):
        at = other.at.astimezone(UTC)
        if at <= since:
            break
        too_late = job.max_lateness is not None and clock - at > job.max_lateness
        if at < slot.at.astimezone(UTC) and (too_late or place >= job.max_catch_up):
            missed.append(other)
    return missed[:MOST_MISSED]
