"""What is told of a run: the refusal's outcome, the failed attempt's record, log and signals."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from . import signals
from .exceptions import BrokenSlot
from .ledger import Admission, Ledger
from .limits import SHORT_TIMEOUT
from .locks import Holder, end_holder, lock_text
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .session import joined_session
from .texts import error_text, loggable
from .transaction import GuardedTransaction

logger = logging.getLogger("flask_cronlock")

SAVEPOINT = text("SAVEPOINT cronlock_subscribers")
ROLL_BACK = text("ROLLBACK TO SAVEPOINT cronlock_subscribers")


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
    end_if_overdue(tx, run.job, lock_text(run.namespace, run.job), holder)
    return Skipped(
        Reason(seen.answer),
        held_by=holder.who if holder else None,
        held_since=holder.since if holder else None,
        ran_at=seen.ran_at,
        **run.about,
    )


def end_if_overdue(tx: GuardedTransaction, name: str, key: str, holder: Holder | None) -> None:
    """End a holder that no limit of the server's could end: one frozen in mid-message."""
    if holder is None or not holder.overdue:
        return
    extra = {"action": "overdue_holder_ended", "job": name, "holder": holder.who}
    try:
        ended = end_holder(tx, holder, key)
    except DBAPIError as error:
        logger.error(
            "%s: %s holds the lock past its deadline, and could not be ended: %s",
            name,
            holder.who,
            error_text(error.orig or error),
            extra={**extra, "action": "overdue_holder_kept"},
        )
        return
    if ended:
        logger.warning(
            "%s: %s held the lock past its deadline (%s), so its backend %s was ended.",
            name,
            holder.who,
            holder.deadline,
            holder.pid,
            extra=extra,
        )


def started(
    app: Flask, db: SQLAlchemy, tx: GuardedTransaction, run: Run, secrets: Iterable[bytes]
) -> None:
    """Tell that the job begins.

    Subscribers have a session of their own in a savepoint: whatever they do to it is undone.
    """
    logger.info(
        "Job %s began%s.",
        run.job,
        f" for {run.slot.isoformat()}" if run.slot else "",
        extra={"action": "job_started", **_extra(run)},
    )
    if not signals.job_started.receivers:
        return
    tx.execute(SAVEPOINT)
    try:
        with joined_session(db, tx.connection) as session:
            run.begin(session, tx.deadline)
            signals.send(signals.job_started, app, secrets, job=run.job, run=run)
            session.rollback()
    except Exception as error:
        logger.error(
            "Job %s: a subscriber of %s broke its session: %s",
            run.job,
            signals.job_started.name,
            error_text(error, secrets),
            extra={"action": "subscriber_failed", **_extra(run)},
        )
    tx.execute(ROLL_BACK)


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
    signals.send(signal, app, secrets, job=outcome.job, outcome=outcome)


def _log_failure(outcome: Failed, error: BaseException, secrets: Iterable[bytes]) -> None:
    """Log with the traceback, but never one that holds a secret: that one goes in redacted."""
    shown, trace = loggable(error, secrets)
    words = f"failed: {error_text(error, secrets).removesuffix('.')}{trace}"
    _log(logging.ERROR, "job_failed", outcome, words, shown)


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
