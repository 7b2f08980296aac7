"""Instants in short, slots walked both ways, and the work of a call counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import FrameType

from flask_cronlock.schedule import CronSchedule, Schedule, Slot

TICK = timedelta(microseconds=1)


def at(text: str) -> datetime:
    """Return the UTC instant of an ISO text that carries an offset."""
    return datetime.fromisoformat(text).astimezone(UTC)


def between(schedule: CronSchedule, begin: str, end: str) -> list[datetime]:
    """List the slots from `begin` to `end`, both included; forward and backward must agree."""
    forward, slot = [], schedule.next(at(begin) - TICK)
    while slot.at.astimezone(UTC) <= at(end):
        forward.append(slot)
        slot = schedule.next(slot.at)
    backward, back = [], schedule.newest(at(end))
    while back is not None and back.at.astimezone(UTC) >= at(begin):
        backward.append(back)
        back = schedule.previous(back)
    assert backward[::-1] == forward
    assert len({slot.key for slot in forward}) == len(forward)
    return [slot.at.astimezone(UTC) for slot in forward]


def assert_they_agree(schedule: Schedule, instant: datetime) -> None:
    """Ask a schedule in all its ways about an instant and the slots around it."""
    following, current = schedule.next(instant), schedule.newest(instant)
    at = following.at.astimezone(UTC)
    assert at > instant
    assert schedule.newest(at) == following
    assert schedule.newest(at - TICK) == current
    assert schedule.previous(following) == current
    assert schedule.next(at - TICK) == following
    assert named(schedule, following.at) == following
    assert named(schedule, at + TICK) is None
    if current is not None:
        assert current.at.astimezone(UTC) <= instant
        assert schedule.next(current.at) == following
        assert schedule.interval(current) == at - current.at.astimezone(UTC) > timedelta(0)
        assert current.key != following.key


def named(schedule: Schedule, instant: datetime) -> Slot | None:
    """Return the slot at exactly that instant, None off the grid."""
    slot = schedule.newest(instant)
    return slot if slot and not slot.at.astimezone(UTC) - instant else None


def work_of(call: Callable[[], object]) -> int:
    """Count the functions, Python's and C's, that `call` enters, until it returns or raises.

    The figure is the same on a slow machine: 50,000 take some 5 ms, and a walk by the minute over
    years enters millions.
    """
    entered = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal entered
        entered += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    except Exception:
        return entered
    finally:
        sys.setprofile(before)
    return entered
