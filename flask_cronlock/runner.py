"""One run of a job: the whole safety argument, top to bottom.

The lock keeps two runs apart, and the claim makes a slot run once. Both live in one guarded
transaction with all that the job writes: they are kept together, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from . import reports
from .config import Config
from .contexts import fresh_context
from .exceptions import NestedRun
from .jobs import Job
from .ledger import Ledger
from .locks import lock_text
from .planning import Plan
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .session import joined_session
from .sqlerrors import as_unavailable
from .texts import value_text
from .transaction import GuardedTransaction

_inside: ContextVar[str | None] = ContextVar("cronlock_inside", default=None)


@contextmanager
def own_context(app: Flask, name: str) -> Iterator[None]:
    """Push an app context that shares no session, snapshot or re-entrant lock with the caller."""
    if (outer := _inside.get()) is not None:
        raise NestedRun(f"{name!r} inside {outer!r}")
    token = _inside.set(name)
    try:
        with fresh_context(app):
            yield
    finally:
        _inside.reset(token)


class Runner:
    """Runs the jobs of one app."""

    def __init__(self, db: SQLAlchemy, config: Config, ledger: Ledger) -> None:
        self.db, self.config, self.ledger = db, config, ledger

    def run(
        self, app: Flask, job: Job, trigger: str, named: datetime | None = None, force: bool = False
    ) -> Outcome:
        """Run *job* for the slot *named*, or else for the newest.

        :raises RefusedRun: when the wish itself is wrong.
        :raises Unavailable: when no run could be begun.
        """
        plan = Plan(job, self.config, app.name, trigger, named, force)
        # 1
        with own_context(app, job.name):
            outcome = self._attempt(app, plan)
        with fresh_context(app):
            reports.tell(app, outcome, self.config.secrets)
        return outcome

    def _attempt(self, app: Flask, plan: Plan) -> Outcome:
        if not self.config.enabled:
            return Skipped(Reason.PAUSED, job=plan.job.name, instance=plan.instance)
        tx = GuardedTransaction(self.db.engine, plan.timeout, plan.instance, plan.lock_wait)
        run: Run | None = None
        try:
            # 2, 3
            with tx:
                # 4
                run = plan.make_run(tx.clock)
                if plan.too_late:
                    return Skipped(Reason.TOO_LATE, **run.about)
                # 5
                seen = self.ledger.admit(tx, run, lock_text(run.namespace, run.job))
                if not seen.locked:
                    return reports.refusal(self.ledger, tx, run, seen)
                # 6
                if (taken := self.ledger.claim(tx, run)) is not None:
                    return Skipped(taken, **run.about)
                # 7
                tx.guard()
                reports.started(app, self.db, tx, run, self.config.secrets)
                with joined_session(self.db, tx.connection) as session:
                    run.begin(session, tx.deadline)
                    value = plan.job.call(run)
                # 8
                tx.check()
                finished_at = self.ledger.finish(tx, run, value_text(value, self.config.secrets))
                # 9
                tx.commit()
                took = finished_at - run.started_at
                return Ran(value, **run.about, run_id=run.id, duration=took)
        # 10
        except BaseException as error:
            if run is None or not tx.claimed:
                if (unavailable := as_unavailable(error)) is not None:
                    raise unavailable from error
                raise
            about = {**run.about, "run_id": run.id, "duration": tx.deadline.elapsed}
            failed = Failed(tx.explain(error), **about)
            reports.record(self.ledger, self.db.engine, run, failed, self.config.secrets)
            if not isinstance(error, (Exception, SystemExit)):
                raise
            return failed
