"""Scheduled jobs that run exactly once across any number of instances of a Flask app."""

from __future__ import annotations

from .exceptions import CronLockError
from .extension import CronLock
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .signals import job_failed, job_skipped, job_started, job_succeeded

__all__ = [
    "CronLock",
    "CronLockError",
    "Failed",
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
