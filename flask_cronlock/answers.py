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
    DirtySession,
    JobTimeout,
    LockLost,
    NestedRun,
    NoFreeConnection,
    OutcomeUnknown,
    RefusedRun,
    SecretMissing,
    SlotError,
    TablesMissing,
    Unavailable,
    UnknownJob,
)
from .results import Failed, Outcome, Ran, Reason, Skipped
from .texts import value_text

RETRY_AFTER = "30"
"""Seconds after which a scheduler may ask again when no run was possible."""

FAILURES: list[tuple[type[BaseException], int, str]] = [
    (JobTimeout, HTTPStatus.GATEWAY_TIMEOUT, "Job timed out"),
    (OutcomeUnknown, HTTPStatus.INTERNAL_SERVER_ERROR, "Outcome unknown"),
    (LockLost, HTTPStatus.INTERNAL_SERVER_ERROR, "Lock lost"),
    (BrokenSlot, HTTPStatus.INTERNAL_SERVER_ERROR, "Slot broken"),
    (BaseException, HTTPStatus.INTERNAL_SERVER_ERROR, "Job failed"),
]
REFUSALS: list[tuple[type[RefusedRun], int, str]] = [
    (UnknownJob, HTTPStatus.NOT_FOUND, "Unknown job"),
    (SlotError, HTTPStatus.BAD_REQUEST, "Not a slot of this job"),
    (DirtySession, HTTPStatus.INTERNAL_SERVER_ERROR, "Session holds uncommitted writes"),
    (NestedRun, HTTPStatus.INTERNAL_SERVER_ERROR, "Nested run"),
    (RefusedRun, HTTPStatus.BAD_REQUEST, "Refused"),
]
UNAVAILABLE: list[tuple[type[Unavailable], int, str]] = [
    (SecretMissing, HTTPStatus.SERVICE_UNAVAILABLE, "No secret configured"),
    (TablesMissing, HTTPStatus.SERVICE_UNAVAILABLE, "Tables missing"),
    (NoFreeConnection, HTTPStatus.SERVICE_UNAVAILABLE, "No connection free"),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "Database unavailable"),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the endpoint sends."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def of_outcome(outcome: Outcome, in_flight_status: int, secrets: Iterable[bytes] = ()) -> Answer:
    """Return the answer for *outcome*; no error's text, no SQL and no secret is in it."""
    body: dict[str, Any] = {"job": outcome.job}
    status: int = HTTPStatus.OK
    match outcome:
        case Ran(value):
            body |= {"outcome": "ran", "processed": json.loads(value_text(value, secrets))}
        case Skipped(reason):
            if reason is Reason.ALREADY_RUNNING:
                status = in_flight_status
            body |= {"outcome": "skipped", "skipped": True, "reason": reason.value}
            body |= _known(held_by=outcome.held_by, held_since=_stamp(outcome.held_since))
            body |= _known(ran_at=_stamp(outcome.ran_at))
        case Failed(error):
            status, words = _row(FAILURES, error)
            body |= {"outcome": "failed", "error": words}
    body["slot"] = _stamp(outcome.slot)
    if outcome.duration is not None:
        body["duration_ms"] = round(outcome.duration.total_seconds() * 1000)
    body |= _known(
        next_slot=_stamp(outcome.next_slot),
        run=str(outcome.run_id) if outcome.run_id else None,
        instance=outcome.instance or None,
    )
    return Answer(status, body)


def of_refusal(error: RefusedRun, about: Mapping[str, str]) -> Answer:
    status, words = _row(REFUSALS, error)
    return Answer(status, {**about, "error": words})


def of_unavailable(error: Unavailable, about: Mapping[str, str]) -> Answer:
    status, words = _row(UNAVAILABLE, error)
    return Answer(status, {**about, "error": words}, {"Retry-After": RETRY_AFTER})


def _row(table: list[tuple[type[Any], int, str]], error: BaseException) -> tuple[int, str]:
    return next((status, words) for kind, status, words in table if isinstance(error, kind))


def _known(**about: str | None) -> dict[str, str]:
    return {key: value for key, value in about.items() if value is not None}


def _stamp(moment: datetime | None) -> str | None:
    """Return *moment* in RFC 3339, with its offset."""
    return moment.isoformat(timespec="seconds") if moment else None
