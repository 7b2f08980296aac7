"""What became of a run: ``Ran``, ``Skipped`` or ``Failed``, made for ``match``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

T = TypeVar("T")


class Reason(StrEnum):
    """Why a run was skipped."""

    ALREADY_RUNNING = "already running"
    ALREADY_RAN = "already ran"
    PAUSED = "paused"
    TOO_LATE = "too late"


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    job: str = ""
    """The job's name, or the lock's."""
    slot: datetime | None = None
    """The scheduled time, aware; ``None`` for a job without a schedule."""
    next_slot: datetime | None = None
    run_id: UUID | None = None
    """Set once the slot was claimed."""
    instance: str = ""
    duration: timedelta | None = None
    """From the claim to the end, by the database's clock where it could be asked."""


@dataclass(frozen=True, slots=True)
class Ran(_About, Generic[T]):
    """The work was done, and everything it wrote was committed."""

    value: T


@dataclass(frozen=True, slots=True)
class Skipped(_About):
    """The work was not begun, and nothing was written."""

    reason: Reason
    held_by: str | None = None
    """Instance and pid of the run that has the lock."""
    held_since: datetime | None = None
    ran_at: datetime | None = None
    """When the slot's run ended."""


@dataclass(frozen=True, slots=True)
class Failed(_About):
    """The run was rolled back, and the slot can run again.

    Not so where *error* is a ``BrokenSlot``, or an ``OutcomeUnknown``, which the slot's next hit
    settles.
    """

    error: BaseException


Outcome: TypeAlias = Ran[Any] | Skipped | Failed
