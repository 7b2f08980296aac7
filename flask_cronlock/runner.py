"""One run of a job: the whole safety argument, top to bottom, by the steps of docs/a-run.md.

The lock keeps two runs apart. The claim makes a slot run once: it is a row, unique for the slot; a
second one waits for the first, and then finds the slot taken. Both live in one guarded transaction
with all that the job writes: they are kept together, or not at all. A run that fails rolls its
claim back with its work, so the slot's next hit runs it again.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from flask import Flask

from .contexts import fresh_context, own_context
from .jobs import Job
from .locks import lock_texts
from .planning import Plan
from .queue.handoff import handoff_of
from .refusal import refused
from .reports import Reports
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .session import joined_session
from .state import AppState
from .texts import value_text
from .transaction import GuardedTransaction


def run_job(
    app: Flask,
    state: AppState,
    job: Job,
    trigger: str,
    named: datetime | None = None,
    force: bool = False,
) -> Outcome:
    """Run *job* for the slot *named*, or else for the newest.

    :raises RefusedRun: when the wish itself is wrong.
    :raises Unavailable: when no run could be begun.
    """
    plan = Plan(job, state.config, app.name, trigger, named, force)
    reports = Reports(app, state)
    # 1
    with own_context(app, state.db, job.name):
        outcome = _attempt(state, plan, reports)
    with fresh_context(app, state.db):
        reports.tell(outcome)
    return outcome


def _attempt(state: AppState, plan: Plan, reports: Reports) -> Outcome:
    if not state.config.enabled:
        return Skipped(Reason.PAUSED, job=plan.job.name, instance=plan.instance)
    tx = GuardedTransaction(state.db.engine, plan.timeout, plan.instance, plan.lock_wait)
    run: Run | None = None
    try:
        # 2, 3
        with tx:
            # 4
            run = plan.make_run(tx.clock)
            if plan.is_too_late(run):
                return Skipped(Reason.TOO_LATE, **run.about)
            # 5
            admission = state.ledger.try_lock(tx, run, lock_texts(run.namespace, run.names))
            if not admission.locked:
                return refused(state.ledger, tx, run, admission)
            # 6
            if (taken := state.ledger.claim(tx, run, plan.look_back)) is not None:
                return refused(state.ledger, tx, run, taken)
            # 7
            tx.guard()
            reports.started(tx, run)
            with joined_session(state.db, tx.connection) as session:
                run.begin(session, tx.deadline, handoff_of(run, state, session))
                value = plan.job.call(run)
                told = value_text(value, state.config.secrets)
            # 8
            tx.check()
            duration = state.ledger.finish(tx, run, told) - run.started_at
            ran = Ran(value, **run.about, run_id=run.id, duration=duration)
            # 9
            tx.commit(partial(state.ledger.is_kept, run))
            return ran
    # 10
    except BaseException as error:
        if run is None or not tx.claimed:
            raise
        about = {**run.about, "run_id": run.id, "duration": tx.deadline.elapsed}
        failed = Failed(tx.explain(error), **about)
        reports.record(run, failed, tx.stamp())
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return failed
