"""APScheduler in each worker: every process keeps the time for itself, and runs what is due."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy.orm import Session

from .body import Body
from .hit import INTERVAL, JOBS, Hit, Place, numbered


class ByScheduler:
    """It is asked by nobody: it asks itself, through *ask*, and is fired by the answer."""

    def __init__(self, place: Place, body: Body) -> None:
        self.engine, self.body, self.slots = place.engine(), body, place.slots

    def start(self, began: float, ask: Callable[[Hit], None]) -> None:
        """Add each job with its interval; all workers count from the same moment."""
        scheduler = BackgroundScheduler(timezone=UTC)
        for job in range(JOBS):
            first = began + job * INTERVAL
            scheduler.add_job(
                self._ask_for_newest,
                "interval",
                args=[job, first, ask],
                seconds=JOBS * INTERVAL,
                start_date=datetime.fromtimestamp(first, UTC),
            )
        scheduler.start()

    def _ask_for_newest(self, job: int, first: float, ask: Callable[[Hit], None]) -> None:
        """Ask for the job's newest slot: what APScheduler calls is not told its time."""
        number = JOBS * int((time.time() - first) / (JOBS * INTERVAL)) + job
        if number < self.slots:
            ask(Hit(*numbered(number)))

    def fire(self, hit: Hit) -> str:
        with Session(self.engine) as session, session.begin():
            self.body(session, hit)
        return "ran"
