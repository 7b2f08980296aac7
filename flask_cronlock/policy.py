"""Which slot a wish to run is for."""

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
    that slot; a named time may be as much before or after it.

    :raises SlotError: when the named time is off the schedule's grid or in the future.
    """
    newest = _reached(schedule, clock, early)
    if newest is None:
        first = schedule.next(clock)
        raise SlotError(f"{job.name!r} has no slot yet; the first is {first.at.isoformat()}")
    if named is None:
        return newest
    if not isinstance(named, datetime):
        raise SlotError(f"{named!r:.80} is no datetime")
    if named.utcoffset() is None:
        raise SlotError(f"{named.isoformat()} has no offset; write it as {newest.at.isoformat()}")
    # What lies beyond the coming slot is as much in the future; the last of all has none beyond.
    coming = schedule.next(newest.at).at.astimezone(UTC)
    slot = _reached(schedule, min(named, coming), early)
    if slot is not None and slot.at.timestamp() > newest.at.timestamp():
        raise SlotError(f"{named.isoformat()} is in the future")
    if slot is None or named - slot.at.astimezone(UTC) > early:
        raise SlotError(
            f"{named.isoformat()} is not on the schedule {schedule} of {job.name!r}; its newest "
            f"slot is {newest.at.isoformat()}"
        )
    return slot


def _reached(schedule: Schedule, moment: datetime, early: timedelta) -> Slot | None:
    """Return the newest slot at *moment*, be it up to *early* ahead; ``None`` before the first."""
    begun = schedule.newest(moment)
    if begun is None:
        return None
    coming = schedule.next(moment)
    ahead = coming.at.astimezone(UTC) - moment
    return coming if ahead <= min(early, schedule.interval(begun) / 2) else begun
