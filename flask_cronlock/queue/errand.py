"""A worker's errand: the run that a request asks for, and what becomes of the request."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from flask import Flask

from ..answers import body_of, of_error
from ..exceptions import BrokenSlot, CronLockError, LockLost, OutcomeUnknown, Unavailable
from ..jobs import Job
from ..results import Failed, Outcome, Ran, Reason, Skipped
from ..runner import run_job
from ..state import AppState
from ..telling import log_words
from ..texts import error_text
from .brief import brief_write, patiently
from .requests import Request
from .work import WHEN_UNAVAILABLE, Delivered, GivenUp, Redeliver

logger = logging.getLogger("flask_cronlock")

MOST_RUNS = 5
FIRST_WAIT = timedelta(seconds=30)
"""The wait after the first run that failed; it doubles with each."""
WHILE_RUNNING = timedelta(seconds=10)
WHEN_REFUSED = timedelta(seconds=30)
REFUSED_UNTIL = timedelta(hours=24)
"""How long a request waits for a release that knows its job, and its slot."""


def run_request(app: Flask, state: AppState, delivered: Delivered) -> None:
    """Run the job that the row asks for, as any other hit would.

    :raises Redeliver: when it is to be tried again.
    :raises GivenUp: when it failed, and is not.
    """
    with app.app_context():
        errand = Errand(app, state, delivered)
        try:
            errand.do()
        except (Unavailable, OutcomeUnknown) as error:
            words, _ = log_words(error, state.config.secrets)
            errand.log(logging.WARNING, "request_unavailable", f"put back, since: {words}")
            raise Redeliver(WHEN_UNAVAILABLE) from None


class Errand:
    """One request in a worker's hands."""

    def __init__(self, app: Flask, state: AppState, delivered: Delivered) -> None:
        self._app, self._state, self._row = app, state, delivered.id
        self._job: str = delivered.args["job"]
        self._request = UUID(delivered.args["request"])

    def do(self) -> None:
        """Run the job, unless the request has ended, or is another row's by now."""
        with brief_write(self._state) as tx:
            request = self._state.requests.begin(tx, self._request, self._row)
            self._begun_at = tx.clock
        if request is None:
            self.log(logging.INFO, "request_over", "has ended before")
            return
        try:
            outcome = self._run(request)
        except Unavailable:
            self._give_back(request)
            raise
        except CronLockError as error:
            self._refuse(request, error)
        else:
            self._settle(request, outcome)

    def _run(self, request: Request) -> Outcome:
        """Run the job; not where it was run before, nor where it brought its workers down."""
        job = self._state.jobs.get(request.job)
        if request.runs > 1 and (ran := self._ran_before(request, job)) is not None:
            return ran
        if request.runs > MOST_RUNS:
            self._give_back(request)
            return Failed(LockLost("its workers died"), job=job.name, slot=request.scheduled_at)
        return run_job(self._app, self._state, job, "queue", request.scheduled_at)

    def _ran_before(self, request: Request, job: Job) -> Ran[Any] | None:
        """Return what a run came to that was kept, and whose worker died before it told."""
        with self._state.brief() as tx:
            run = self._state.requests.kept_run(tx, self._state.ledger.run, request)
        if run is None:
            return None
        return Ran(
            json.loads(run.value),
            job=job.name,
            slot=_moment(request.about["slot"]),
            next_slot=_moment(request.about.get("next_slot")),
            run_id=run.id,
            instance=run.instance,
            duration=run.finished_at - run.started_at,
        )

    def _settle(self, request: Request, outcome: Outcome) -> None:
        """End the request, or put it back where another run is to follow."""
        if isinstance(outcome, Skipped) and outcome.reason is Reason.ALREADY_RUNNING:
            self._give_back(request)
            self.log(logging.INFO, "request_put_back", "put back: its job is running elsewhere")
            raise Redeliver(WHILE_RUNNING)
        last = request.runs >= MOST_RUNS
        if isinstance(outcome, Failed) and not last and not isinstance(outcome.error, BrokenSlot):
            wait = FIRST_WAIT * 2 ** (request.runs - 1)
            words = f"run {request.runs} of {MOST_RUNS} failed; the next in {wait.seconds} s"
            self.log(logging.WARNING, "request_put_back", words)
            raise Redeliver(wait)
        self._end(request, body_of(outcome, self._state.config.secrets))
        if isinstance(outcome, Failed):
            why = error_text(outcome.error, self._state.config.secrets).rstrip(".: ")
            self._give_up(f"given up after run {min(request.runs, MOST_RUNS)}: {why}")

    def _refuse(self, request: Request, error: CronLockError) -> None:
        """Put back what this worker's release refuses: that of a newer one may know it."""
        words, _ = log_words(error, self._state.config.secrets)
        if self._begun_at - request.requested_at.astimezone(UTC) < REFUSED_UNTIL:
            self._give_back(request)
            self.log(logging.WARNING, "request_refused", f"put back, since: {words}")
            raise Redeliver(WHEN_REFUSED)
        self._end(request, {**request.about, **of_error(error, {}).body})
        self._give_up(f"given up, since: {words}")

    def _give_up(self, words: str) -> None:
        self.log(logging.ERROR, "request_given_up", words)
        raise GivenUp(words)

    def _give_back(self, request: Request) -> None:
        with brief_write(self._state) as tx:
            self._state.requests.give_back(tx, request)

    def _end(self, request: Request, body: dict[str, object]) -> None:
        """Write what became of it: else it would be run for again."""

        def write() -> None:
            with brief_write(self._state) as tx:
                self._state.requests.end(tx, request, json.dumps(body))

        patiently(write)

    def log(self, level: int, action: str, words: str) -> None:
        """Log one line about the request."""
        extra = {"action": action, "job": self._job, "request": str(self._request)}
        logger.log(level, "Job %s, request %s: %s.", self._job, self._request, words, extra=extra)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
