"""Scheduled jobs that run exactly once across any number of instances of a Flask app."""

from __future__ import annotations

from .exceptions import CronLockError, NotDone
from .extension import CronLock
from .queue.item import Item
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .signals import job_failed, job_skipped, job_started, job_succeeded

__all__ = [
    "CronLock",
    "CronLockError",
    "Failed",
    "Item",
    "NotDone",
    "Outcome",
    "Ran",
    "Reason",
    "Run",
    "Skipped",
    "job_failed",
    "job_skipped",
    "job_started",
    "job_succeeded",
]
