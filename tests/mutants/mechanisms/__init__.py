"""The safety mechanisms, by theme; each is told beside the invariant that it keeps."""

from __future__ import annotations

from ..mechanism import Mechanism
from . import (
    beside,
    claim,
    clock,
    commit,
    connection,
    context,
    door,
    failure,
    job,
    limits,
    lock,
    meaning,
    refusals,
    schedule,
    settling,
    slot,
    texts,
    unavailable,
)

ALL: list[Mechanism] = [
    *context.MECHANISMS,
    *connection.MECHANISMS,
    *limits.MECHANISMS,
    *slot.MECHANISMS,
    *lock.MECHANISMS,
    *claim.MECHANISMS,
    *job.MECHANISMS,
    *beside.MECHANISMS,
    *commit.MECHANISMS,
    *settling.MECHANISMS,
    *failure.MECHANISMS,
    *meaning.MECHANISMS,
    *unavailable.MECHANISMS,
    *door.MECHANISMS,
    *texts.MECHANISMS,
    *refusals.MECHANISMS,
    *schedule.MECHANISMS,
    *clock.MECHANISMS,
]
