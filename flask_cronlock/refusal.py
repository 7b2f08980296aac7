"""The outcome of a run that was not admitted to the lock."""

from __future__ import annotations

import logging

from .exceptions import BrokenSlot
from .holders import end_if_overdue
from .ledger import Admission, Ledger
from .results import Failed, Outcome, Reason, Skipped
from .run import Run
from .transaction import GuardedTransaction

logger = logging.getLogger("flask_cronlock")


def refused(ledger: Ledger, tx: GuardedTransaction, run: Run, admission: Admission) -> Outcome:
    """Return what becomes of *run*; mark a broken slot, and end an overdue holder, on the way."""
    if admission.answer == "broken":
        ledger.mark_broken(tx, run)
        tx.commit()
    if admission.broken:
        # At the claim it is left to the next hit: a claim under another name is to be undone.
        return Failed(BrokenSlot(), **run.about)
    _warn_of_shared_namespace(run, admission)
    holder = admission.holder
    end_if_overdue(tx, run.job, holder)
    return Skipped(
        Reason(admission.answer),
        held_by=holder.who if holder else None,
        held_since=holder.since if holder else None,
        ran_at=admission.ran_at,
        **run.about,
    )


def _warn_of_shared_namespace(run: Run, admission: Admission) -> None:
    if admission.run_app in (None, run.app):
        return
    logger.warning(
        "Job %s: its slot was used up by the app %r, not by %r: set CRONLOCK_NAMESPACE, one for "
        "each app that shares this database.",
        run.job,
        admission.run_app,
        run.app,
        extra={"action": "namespace_shared", "job": run.job},
    )
