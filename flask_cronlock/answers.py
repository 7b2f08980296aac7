"""The HTTP form of outcomes and errors: status, body and headers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from .exceptions import (
    BrokenSlot,
    CronLockError,
    DirtySession,
    JobTimeout,
    LockLost,
    NestedRun,
    NoFreeConnection,
    OutcomeUnknown,
    RefusedRun,
    RightsMissing,
    SecretMissing,
    SlotError,
    TablesMissing,
    Unavailable,
    UnknownJob,
)
from .queue.requests import ENDED, Queued, Request
from .results import Failed, Outcome, Ran, Reason, Skipped
from .run import Run
from .texts import value_text

RETRY_AFTER = "30"
"""Seconds after which a scheduler may ask again when no run was possible."""
LOOK_AFTER = "5"
"""Seconds after which it is worth asking what became of a run on a worker."""

FAILURES: list[tuple[type[BaseException], int, str]] = [
    (JobTimeout, HTTPStatus.GATEWAY_TIMEOUT, "Job timed out"),
    (OutcomeUnknown, HTTPStatus.INTERNAL_SERVER_ERROR, "Outcome unknown"),
    (LockLost, HTTPStatus.INTERNAL_SERVER_ERROR, "Lock lost"),
    (BrokenSlot, HTTPStatus.INTERNAL_SERVER_ERROR, "Slot broken"),
    (BaseException, HTTPStatus.INTERNAL_SERVER_ERROR, "Job failed"),
]
"""What a run failed of."""
ERRORS: list[tuple[type[BaseException], int, str]] = [
    (UnknownJob, HTTPStatus.NOT_FOUND, "Unknown job"),
    (SlotError, HTTPStatus.BAD_REQUEST, "Not a slot of this job"),
    (DirtySession, HTTPStatus.INTERNAL_SERVER_ERROR, "Session holds uncommitted writes"),
    (NestedRun, HTTPStatus.INTERNAL_SERVER_ERROR, "Nested run"),
    (RefusedRun, HTTPStatus.BAD_REQUEST, "Refused"),
    (SecretMissing, HTTPStatus.SERVICE_UNAVAILABLE, "No secret configured"),
    (TablesMissing, HTTPStatus.SERVICE_UNAVAILABLE, "Tables missing"),
    (RightsMissing, HTTPStatus.SERVICE_UNAVAILABLE, "Rights missing"),
    (NoFreeConnection, HTTPStatus.SERVICE_UNAVAILABLE, "No connection free"),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "Database unavailable"),
    (OutcomeUnknown, HTTPStatus.INTERNAL_SERVER_ERROR, "Outcome unknown"),
    (CronLockError, HTTPStatus.INTERNAL_SERVER_ERROR, "Misconfigured"),
    (BaseException, HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error"),
]
"""Why no run was begun."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the endpoint sends."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def of_outcome(outcome: Outcome, in_flight_status: int, secrets: Iterable[bytes] = ()) -> Answer:
    """Return the answer for *outcome*; no error's text, no SQL and no secret is in it."""
    status: int = HTTPStatus.OK
    match outcome:
        case Skipped(Reason.ALREADY_RUNNING):
            status = in_flight_status
        case Failed(error):
            status, _ = _row(FAILURES, error)
    return Answer(status, body_of(outcome, secrets))


def body_of(outcome: Outcome, secrets: Iterable[bytes] = ()) -> dict[str, Any]:
    """Return *outcome* as a JSON object."""
    body: dict[str, Any] = {"job": outcome.job}
    match outcome:
        case Ran(value):
            body |= {"outcome": "ran", "processed": json.loads(value_text(value, secrets))}
        case Skipped(reason):
            body |= {"outcome": "skipped", "skipped": True, "reason": reason.value}
            body |= _known(held_by=outcome.held_by, held_since=_stamp(outcome.held_since))
            body |= _known(ran_at=_stamp(outcome.ran_at))
        case Failed(error):
            body |= {"outcome": "failed", "error": _row(FAILURES, error)[1]}
    body["slot"] = _stamp(outcome.slot)
    if outcome.duration is not None:
        body["duration_ms"] = round(outcome.duration.total_seconds() * 1000)
    return body | _known(
        next_slot=_stamp(outcome.next_slot),
        run=str(outcome.run_id) if outcome.run_id else None,
        instance=outcome.instance or None,
    )


def of_queued(queued: Queued, location: str) -> Answer:
    """Return the answer for a run that a worker was asked for; its state is at *location*."""
    body = {
        "job": queued.job,
        "outcome": "queued",
        "slot": _stamp(queued.slot),
        "request": str(queued.request),
    }
    known = _known(next_slot=_stamp(queued.next_slot), instance=queued.instance or None)
    headers = {"Location": location, "Retry-After": LOOK_AFTER}
    return Answer(HTTPStatus.ACCEPTED, body | known, headers)


def of_request(request: Request, queue_state: str | None) -> Answer:
    """Return the answer for what became of *request*, whose row in the queue has a state."""
    about: dict[str, Any] = {"request": str(request.id), "state": "ended", "runs": request.runs}
    if request.state != ENDED:
        about["state"] = {"todo": "queued", "doing": "running"}.get(queue_state or "", "lost")
    if about["state"] == "lost":
        about["hint"] = "Its row is gone from the queue: POST to the job again"
    goes_on = about["state"] in ("queued", "running")
    headers = {"Retry-After": LOOK_AFTER} if goes_on else {}
    return Answer(HTTPStatus.OK, request.about | about, headers)


def about_request(run: Run) -> dict[str, Any]:
    """Return what a request tells until it has ended."""
    return {"job": run.job, "slot": _stamp(run.slot)} | _known(next_slot=_stamp(run.next_slot))


def of_error(error: Exception, about: Mapping[str, str]) -> Answer:
    """Return the answer when no run was begun because of *error*."""
    status, words = _row(ERRORS, error)
    headers = {"Retry-After": RETRY_AFTER} if isinstance(error, Unavailable) else {}
    return Answer(status, {**about, "error": words}, headers)


def _row(table: list[tuple[type[Any], int, str]], error: BaseException) -> tuple[int, str]:
    return next((status, words) for kind, status, words in table if isinstance(error, kind))


def _known(**about: str | None) -> dict[str, str]:
    return {key: value for key, value in about.items() if value is not None}


def _stamp(moment: datetime | None) -> str | None:
    """Return *moment* in RFC 3339, with its offset."""
    return moment.isoformat(timespec="seconds") if moment else None
