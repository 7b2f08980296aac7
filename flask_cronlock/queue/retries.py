"""When a row of the queue is due again that a worker has not brought to its end."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision

from ..telling import log_words
from .heart import Heart
from .work import GivenUp, Redeliver, UnknownHere

logger = logging.getLogger("flask_cronlock")

UNKNOWN_WAIT = 30.0
PATIENT_FOR = 10
"""How often a row comes back that soon; then ever later, to the longest wait, and never fails."""
FIRST_WAIT = 10.0
LONGEST_WAIT = 600.0
MOST_BROKEN = 20
"""How often a worker tries a row again that breaks its own code."""


class Retries(BaseRetryStrategy):
    """Says what becomes of a row after an exception."""

    def __init__(self, heart: Heart, secrets: Iterable[bytes]) -> None:
        self._heart, self._secrets = heart, tuple(secrets)
        self._broken: Counter[int | None] = Counter()
        self._unknown: Counter[int | None] = Counter()

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Return when it is due again, or ``None`` where it has failed."""
        if isinstance(exception, Redeliver):
            again = exception.wait
            return RetryDecision(retry_at=self._in(again.total_seconds()) if again else None)
        if isinstance(exception, GivenUp):
            return None
        if isinstance(exception, UnknownHere):
            wait: float | None = self._until_known(job)
        else:
            wait = self._after_break(job)
        self._tell(exception, job, wait)
        return RetryDecision(retry_at=self._in(wait)) if wait else None

    def _until_known(self, job: Job) -> float:
        """Return the wait for a release that knows the row: what is in it has no record yet.

        At random, else a worker that looks each second may be the first to come each time.
        """
        self._unknown[job.id] += 1
        longer = max(1.0, self._unknown[job.id] / PATIENT_FOR)
        return min(UNKNOWN_WAIT * longer, LONGEST_WAIT) * random.uniform(0.5, 1.5)

    def _after_break(self, job: Job) -> float | None:
        """Return the wait; the row's own count has grown by what was no break, too."""
        self._broken[job.id] += 1
        times = self._broken[job.id]
        if times > MOST_BROKEN:
            del self._broken[job.id]
            return None
        return min(FIRST_WAIT * 2.0 ** (times - 1), LONGEST_WAIT)

    def _in(self, wait: float) -> datetime:
        """Return the time after *wait* by the database's clock."""
        return datetime.now(UTC) + timedelta(seconds=self._heart.clock_ahead + wait)

    def _tell(self, error: BaseException, job: Job, wait: float | None) -> None:
        told, shown = log_words(error, self._secrets)
        then = f"it is tried again in {wait:.1f} s" if wait else "it has failed"
        level = logging.WARNING if wait else logging.ERROR
        extra = {"action": "row_broken", "task": job.task_name, "row": job.id}
        words = "Task %s, queue row %s: %s; %s."
        if isinstance(error, UnknownHere):
            told, shown = str(error), None
        logger.log(level, words, job.task_name, job.id, told, then, exc_info=shown, extra=extra)
