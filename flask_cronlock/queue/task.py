"""A task: a function that a worker calls later, and how often and how surely it may."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

DEFAULT_QUEUE = "default"
RUN_TASK, JOBS_QUEUE = "cronlock-run", "jobs"
"""The name of queue rows that ask for a run of a job, and their queue."""
DEFAULT_ATTEMPTS = 5
DEFAULT_BACKOFF = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=1)


class Delivery(StrEnum):
    """What becomes of an item whose worker dies half-way."""

    ONCE = "once"
    """Its record commits with what it writes to the database, or neither does."""
    AT_MOST_ONCE = "at_most_once"
    """It is marked before it is called, and never called again: it is in doubt."""
    AT_LEAST_ONCE = "at_least_once"
    """It is called again, with the same key."""


@dataclass(frozen=True, slots=True)
class Task:
    """A function registered under a name, for workers to call."""

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    """Without the item."""
    takes_item: bool
    queue: str = DEFAULT_QUEUE
    delivery: Delivery = Delivery.ONCE
    attempts: int = DEFAULT_ATTEMPTS
    backoff: timedelta = DEFAULT_BACKOFF
    """The wait after the first attempt that failed; it doubles with each."""
    timeout: timedelta | None = None
    key: tuple[str, ...] = ()
    """The arguments that tell one item from another; all where none is named."""

    def wait_after(self, attempt: int) -> timedelta:
        """Return how long an item waits that failed for the *attempt*-th time."""
        return min(self.backoff * (1 << min(attempt - 1, 20)), LONGEST_WAIT)
