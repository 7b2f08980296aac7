"""What is told of a run: log, signals, and the record of a failed attempt."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from blinker import NamedSignal
from flask import Flask
from sqlalchemy import text

from . import signals
from .exceptions import LockLost, OutcomeUnknown
from .limits import SHORT_TIMEOUT
from .results import Failed, Outcome, Ran, Skipped
from .run import Run
from .session import lent_session
from .sqlerrors import driver_error
from .state import AppState
from .texts import error_text, loggable
from .transaction import GuardedTransaction

logger = logging.getLogger("flask_cronlock")

SAVEPOINT = text("SAVEPOINT cronlock_subscribers")
ROLL_BACK = text("ROLLBACK TO SAVEPOINT cronlock_subscribers")


@dataclass(frozen=True, slots=True)
class Reports:
    """Tells of the runs of *app*."""

    app: Flask
    state: AppState

    def started(self, tx: GuardedTransaction, run: Run) -> None:
        """Tell that the job begins.

        Subscribers have a session of their own in a savepoint: whatever they do to it is undone.
        What they do elsewhere is theirs, and nothing of the job's.
        """
        slot = f" for {run.slot.isoformat()}" if run.slot else ""
        logger.info("Job %s began%s.", run.job, slot, extra=_extra("job_started", run, run.id))
        if not signals.job_started.receivers:
            return
        tx.execute(SAVEPOINT)
        try:
            with lent_session(self.state.db, tx.connection) as session:
                run.begin(session, tx.deadline)
                self._send(signals.job_started, job=run.job, run=run)
                session.rollback()
        except Exception as error:
            logger.error(
                "Job %s: a subscriber of %s broke its session: %s",
                run.job,
                signals.job_started.name,
                self._text(error),
                extra=_extra("subscriber_failed", run, run.id),
            )
        tx.execute(ROLL_BACK)

    def record(self, run: Run, failed: Failed, stamp: datetime | None) -> None:
        """Record a failed attempt in a transaction of its own.

        The run's connection is back in the pool by now, so that one is enough.
        """
        try:
            engine = self.state.db.engine
            with GuardedTransaction(engine, SHORT_TIMEOUT, run.instance) as tx:
                self.state.ledger.record_failure(tx, run, self._text(failed.error), stamp)
                tx.prove()
                tx.commit()
        except Exception as error:
            with _log_may_fail():
                logger.error(
                    "Job %s: the failed attempt could not be recorded: %s",
                    run.job,
                    self._text(error),
                    extra=_extra("attempt_not_recorded", run, run.id),
                )

    def tell(self, outcome: Outcome) -> None:
        """Log *outcome* and send its signal; the run is over, whatever log and subscribers do."""
        match outcome:
            case Ran(_):
                signal = signals.job_succeeded
            case Skipped(_):
                signal = signals.job_skipped
            case Failed(_):
                signal = signals.job_failed
        with _log_may_fail():
            self._log(outcome)
        with _log_may_fail():
            self._send(signal, job=outcome.job, outcome=outcome)

    def _log(self, outcome: Outcome) -> None:
        match outcome:
            case Ran(_):
                _log(logging.INFO, "job_succeeded", outcome, "ran")
            case Skipped(reason):
                held = f" at {outcome.held_by}" if outcome.held_by else ""
                _log(logging.INFO, "job_skipped", outcome, f"was skipped: {reason}{held}")
            case Failed(error):
                self._log_failure(outcome, error)

    def _log_failure(self, outcome: Failed, error: BaseException) -> None:
        """Log with the traceback, but never one that holds a secret: that one goes in redacted.

        A lost connection has none to show: what the server said is told instead.
        """
        run = f" (run {outcome.run_id})" if outcome.run_id else ""
        words = f"failed{run}: {self._text(error).rstrip('.: ')}"
        said = driver_error(error) if type(error) in (LockLost, OutcomeUnknown) else None
        if said is not None:
            _log(logging.ERROR, "job_failed", outcome, f"{words} ({self._text(said)})")
            return
        shown, trace = loggable(error, self.state.config.secrets)
        _log(logging.ERROR, "job_failed", outcome, words + trace, shown)

    def _send(self, signal: NamedSignal, **about: Any) -> None:
        signals.send(signal, self.app, self.state.config.secrets, **about)

    def _text(self, error: BaseException) -> str:
        return error_text(error, self.state.config.secrets)


@contextmanager
def _log_may_fail() -> Iterator[None]:
    """Print what a broken log raises, and go on: the run's outcome stands."""
    try:
        yield
    except Exception:
        traceback.print_exc()


def _log(
    level: int, action: str, outcome: Outcome, words: str, error: BaseException | None = None
) -> None:
    extra = _extra(action, outcome, outcome.run_id)
    logger.log(level, "Job %s %s.", outcome.job, words, exc_info=error, extra=extra)


def _extra(action: str, about: Run | Outcome, run_id: object) -> dict[str, str | None]:
    return {
        "action": action,
        "job": about.job,
        "slot": about.slot.isoformat() if about.slot else None,
        "run": str(run_id) if run_id else None,
    }
