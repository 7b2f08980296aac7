"""Handing a run over to a worker: nothing is claimed, and no lock taken, until it is run there."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from functools import partial
from uuid import UUID

from flask import Flask

from ..answers import about_request
from ..contexts import fresh_context, own_context
from ..jobs import Job
from ..planning import Plan
from ..refusal import refused
from ..reports import Reports
from ..results import Outcome, Reason, Skipped
from ..state import AppState
from .requests import Queued, Request

logger = logging.getLogger("flask_cronlock")


def hand_over(
    app: Flask, state: AppState, job: Job, trigger: str, named: datetime | None = None
) -> Queued | Outcome:
    """Have a worker run *job* for the slot *named*, or else for the newest; it is asked once.

    What the workers have given up is begun anew by a hit, but not by a clock.

    :returns: an outcome where there is nothing to run, as a run would have found.
    :raises RefusedRun: when the wish itself is wrong.
    :raises Unavailable: when the queue could not be reached.
    :raises OutcomeUnknown: when it could not be found out whether it was.
    """
    plan = Plan(job, state.config, app.name, trigger, named, force=False)
    with own_context(app, state.db, job.name):
        answer = _attempt(state, plan)
    if isinstance(answer, Queued):
        _tell(answer)
        return answer
    with fresh_context(app, state.db):
        Reports(app, state).tell(answer)
    return answer


def _attempt(state: AppState, plan: Plan) -> Queued | Outcome:
    if not state.config.enabled:
        return Skipped(Reason.PAUSED, job=plan.job.name, instance=plan.instance)
    with state.brief() as tx:
        run = plan.make_run(tx.clock)
        if plan.is_too_late(run):
            return Skipped(Reason.TOO_LATE, **run.about)
        admission = state.ledger.look(tx, run)
        if not admission.open:
            return refused(state.ledger, tx, run, admission)
        body, renews = json.dumps(about_request(run)), run.trigger != "clock"
        request, fresh = state.requests.put(tx, run, body, renews)
        if fresh:
            tx.prove()
            tx.commit(partial(state.requests.is_kept, request))
    return Queued(**run.about, request=request.id, fresh=fresh, given_up=request.given_up)


def find_request(state: AppState, request: UUID) -> tuple[Request, str | None] | None:
    """Return the request of an id, and the state of its row in the queue."""
    with state.brief() as tx:
        return state.requests.get(tx, state.config.namespace, request)


def _tell(queued: Queued) -> None:
    """Log that a worker was asked; that one was asked before is no news."""
    slot = queued.slot.isoformat() if queued.slot else None
    about = {"job": queued.job, "slot": slot, "request": str(queued.request)}
    name = f"{queued.job} for {slot}" if slot else queued.job
    before = "was given up by the workers" if queued.given_up else "is with the workers already"
    words = "was handed to the workers" if queued.fresh else before
    level = logging.INFO if queued.fresh else logging.DEBUG
    logger.log(level, "Job %s %s.", name, words, extra={"action": "job_queued", **about})
