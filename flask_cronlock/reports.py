"""What is told of a run: the refusal's outcome, the failed attempt's record, log and signals."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from flask import Flask
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from . import signals
from .exceptions import BrokenSlot
from .ledger import Admission, Ledger
from .limits import SHORT_TIMEOUT
from .locks import Holder, end_overdue, lock_text
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .texts import error_text, redacted, traceback_text
from .transaction import GuardedTransaction

logger = logging.getLogger("flask_cronlock")


def refusal(ledger: Ledger, tx: GuardedTransaction, run: Run, seen: Admission) -> Outcome:
    """Return the outcome of a run that did not get the lock."""
    if seen.broken:
        ledger.mark_broken(tx, run)
        tx.commit()
        return Failed(BrokenSlot(), **run.about)
    if seen.run_app not in (None, run.app):
        logger.warning(
            "Job %s: its slot was used up by the app %r, not by %r: set CRONLOCK_NAMESPACE, one "
            "for each app that shares this database.",
            run.job,
            seen.run_app,
            run.app,
            extra={"action": "namespace_shared", "job": run.job},
        )
    holder = seen.holder
    if holder is not None and holder.overdue:
        _end(tx, run, holder)
    return Skipped(
        Reason(seen.answer),
        held_by=holder.who if holder else None,
        held_since=holder.since if holder else None,
        ran_at=seen.ran_at,
        **run.about,
    )


def _end(tx: GuardedTransaction, run: Run, holder: Holder) -> None:
    """End a holder that no limit of the server's could end: one frozen in mid-message."""
    extra = {"action": "overdue_holder_ended", "job": run.job, "holder": holder.who}
    try:
        ended = end_overdue(tx, holder, lock_text(run.namespace, run.job))
    except DBAPIError as error:
        logger.error(
            "Job %s: %s holds its lock past the deadline, and could not be ended: %s",
            run.job,
            holder.who,
            error_text(error.orig or error),
            extra={**extra, "action": "overdue_holder_kept"},
        )
        return
    if ended:
        logger.warning(
            "Job %s: %s held its lock past the deadline (%s), so its backend %s was ended.",
            run.job,
            holder.who,
            holder.deadline,
            holder.pid,
            extra=extra,
        )


def started(app: Flask, run: Run) -> None:
    """Tell that the job begins; what a subscriber wrote through the run's session is undone."""
    logger.info(
        "Job %s began%s.",
        run.job,
        f" for {run.slot.isoformat()}" if run.slot else "",
        extra={"action": "job_started", **_extra(run)},
    )
    signals.send(signals.job_started, app, job=run.job, run=run)
    run.session.rollback()


def record(
    ledger: Ledger, engine: Engine, run: Run, failed: Failed, secrets: Iterable[bytes]
) -> None:
    """Record a failed attempt in a transaction of its own; the run's connection is back by now."""
    try:
        with GuardedTransaction(engine, SHORT_TIMEOUT, run.instance) as tx:
            ledger.record_failure(tx, run, error_text(failed.error, secrets))
            tx.commit()
    except Exception as error:
        logger.error(
            "Job %s: the failed attempt could not be recorded: %s",
            run.job,
            error_text(error, secrets),
            extra={"action": "attempt_not_recorded", **_extra(run)},
        )


def tell(app: Flask, outcome: Outcome, secrets: Iterable[bytes]) -> None:
    """Log *outcome* and send its signal; the run is over, whatever a subscriber does."""
    match outcome:
        case Ran(_):
            _log(logging.INFO, "job_succeeded", outcome, "ran")
            signal = signals.job_succeeded
        case Skipped(reason):
            held = f" at {outcome.held_by}" if outcome.held_by else ""
            _log(logging.INFO, "job_skipped", outcome, f"was skipped: {reason}{held}")
            signal = signals.job_skipped
        case Failed(error):
            _log_failure(outcome, error, secrets)
            signal = signals.job_failed
    signals.send(signal, app, job=outcome.job, outcome=outcome)


def _log_failure(outcome: Failed, error: BaseException, secrets: Iterable[bytes]) -> None:
    """Log with the traceback, but never one that holds a secret: that one goes in redacted."""
    trace = traceback_text(error, ())
    safe = redacted(trace, secrets)
    words = f"failed: {error_text(error, secrets)}"
    if safe == trace:
        _log(logging.ERROR, "job_failed", outcome, words, error)
    else:
        _log(logging.ERROR, "job_failed", outcome, f"{words}\n{safe}")


def _log(
    level: int, action: str, outcome: Outcome, words: str, error: BaseException | None = None
) -> None:
    logger.log(
        level,
        "Job %s %s.",
        outcome.job,
        words,
        exc_info=error,
        extra={
            "action": action,
            "job": outcome.job,
            "slot": outcome.slot.isoformat() if outcome.slot else None,
            "run": str(outcome.run_id) if outcome.run_id else None,
        },
    )


def _extra(run: Run) -> dict[str, str | None]:
    return {
        "job": run.job,
        "slot": run.slot.isoformat() if run.slot else None,
        "run": str(run.id),
    }
