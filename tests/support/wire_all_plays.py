"""The runs that are cut off on more than one route."""

from __future__ import annotations

from .wire_clock_plays import FirstLook
from .wire_job_plays import AfterMissed, AlreadyRan, AlreadyRunning, Failing
from .wire_lock_plays import WithLock
from .wire_plays import Play

PLAYS: tuple[type[Play], ...] = (
    FirstLook,
    Play,
    AfterMissed,
    AlreadyRan,
    AlreadyRunning,
    Failing,
    WithLock,
)
"""The first is quickest where it knows no other's job."""
