"""The safety mechanisms, by theme; each is told beside the invariant that it keeps."""

from __future__ import annotations

from ..mechanism import Mechanism
from . import claim, clock, commit, connection, door, failure, job, limits, lock, schedule, slot

ALL: list[Mechanism] = [
    *connection.MECHANISMS,
    *limits.MECHANISMS,
    *slot.MECHANISMS,
    *lock.MECHANISMS,
    *claim.MECHANISMS,
    *job.MECHANISMS,
    *commit.MECHANISMS,
    *failure.MECHANISMS,
    *door.MECHANISMS,
    *schedule.MECHANISMS,
    *clock.MECHANISMS,
]
