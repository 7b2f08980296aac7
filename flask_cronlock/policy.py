"""Which slot a wish to run is for, and whether it is too late for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .exceptions import SlotError
from .jobs import Job
from .schedule import Schedule, Slot


def choose_slot(
    job: Job, schedule: Schedule, named: datetime | None, clock: datetime, early: timedelta
) -> Slot:
    """Return the slot that was named, or else the newest one by the database's *clock*.

    A wish that comes up to *early* before a slot, but never more than half the interval, is for
    that slot.

    :raises SlotError: when the named time is off the schedule's grid or in the future.
    """
    newest = _newest(job, schedule, clock, early)
    if named is None:
        return newest
    if not isinstance(named, datetime):
        raise SlotError(f"{named!r:.80} is no datetime")
    if named.utcoffset() is None:
        raise SlotError(f"{named.isoformat()} has no offset; write it as {newest.at.isoformat()}")
    slot = schedule.named(named)
    if slot is None:
        raise SlotError(
            f"{named.isoformat()} is not on the schedule {schedule} of {job.name!r}; its newest "
            f"slot is {newest.at.isoformat()}"
        )
    if slot.at.timestamp() > newest.at.timestamp():
        raise SlotError(f"{named.isoformat()} is in the future")
    return slot


def _newest(job: Job, schedule: Schedule, clock: datetime, early: timedelta) -> Slot:
    begun, coming = schedule.newest(clock), schedule.next(clock)
    if begun is None:
        raise SlotError(f"{job.name!r} has no slot yet; the first is {coming.at.isoformat()}")
    ahead = coming.at.astimezone(UTC) - clock
    return coming if ahead <= min(early, schedule.interval(begun) / 2) else begun


def is_too_late(job: Job, slot: datetime, next_slot: datetime, clock: datetime) -> bool:
    """Tell whether *slot* is over: ``max_lateness`` after its time, else when the next begins."""
    if job.max_lateness is not None:
        return clock.timestamp() - slot.timestamp() > job.max_lateness.total_seconds()
    return clock.timestamp() >= next_slot.timestamp()
