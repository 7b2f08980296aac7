"""Every outcome and every error has its row in the contract, and says no more than it must."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock import Failed, Ran, Reason, Skipped, exceptions
from flask_cronlock.answers import of_error, of_outcome
from flask_cronlock.exceptions import CronLockError, RefusedRun, RunError, Unavailable
from flask_cronlock.texts import LONGEST_VALUE, value_text

CLASSES = {
    kind
    for kind in vars(exceptions).values()
    if inspect.isclass(kind) and issubclass(kind, CronLockError)
}
ROWS: dict[str, tuple[int, str, str]] = {
    "RefusedRun": (400, "Refused", "refused before anything was touched"),
    "UnknownJob": (404, "Unknown job", "`flask cron list` shows the jobs"),
    "NestedRun": (500, "Nested run", "call the work as a plain function"),
    "DirtySession": (500, "Session holds uncommitted writes", "commit them or roll them back"),
    "SlotError": (400, "Not a slot of this job", "`flask cron list` shows its slots"),
    "LockNameError": (400, "Refused", "Name a lock by"),
    "Unavailable": (503, "Database unavailable", "try again later"),
    "DatabaseUnreachable": (503, "Database unavailable", "try again when it is"),
    "NoFreeConnection": (503, "No connection free", "raise pool_size or pool_timeout"),
    "NotPrimary": (503, "Database unavailable", "point SQLALCHEMY_DATABASE_URI at the primary"),
    "NotInTime": (503, "Database unavailable", "raise it, or see what holds the database up"),
    "Interrupted": (503, "Database unavailable", "in PgBouncer query_timeout"),
    "TransactionLost": (503, "Database unavailable", "the log of the database or pooler says"),
    "TablesLocked": (503, "Database unavailable", "try again when that has ended"),
    "StatementPooling": (503, "Database unavailable", "set pool_mode = transaction"),
    "TablesMissing": (503, "Tables missing", "run `flask cron init-db`"),
    "RightsMissing": (503, "Rights missing", "GRANT SELECT, INSERT, UPDATE"),
    "SecretMissing": (503, "No secret configured", "set CRONLOCK_SECRET or CRON_SECRET"),
    "RunError": (500, "Job failed", "The run was rolled back"),
    "JobTimeout": (504, "Job timed out", "raise its timeout, or do less"),
    "LockLost": (500, "Lock lost", "let SQL errors end the job"),
    "TransactionEnded": (500, "Lock lost", "use db.session.commit()"),
    "SessionReplaced": (500, "Lock lost", "take db.session.remove() out of the job"),
    "ForeignObject": (500, "Job failed", "load it again through the session"),
    "ForeignTransaction": (500, "Job failed", "in the context that the job is called in"),
    "ForeignEngine": (500, "Job failed", "return db.engine from get_bind()"),
    "SplitSession": (500, "Job failed", "return db.engine from get_bind()"),
    "IsolationFixed": (500, "Job failed", "take isolation_level out of the job"),
    "BrokenSlot": (500, "Slot broken", "run the slot by hand with --force"),
    "OutcomeUnknown": (500, "Outcome unknown", "the next hit for the slot settles it"),
}
OUTSIDE_REQUESTS = {
    "CronLockError": "could not go on",
    "ConfigError": "Correct the configuration",
    "QueueMissing": "pip install 'Flask-CronLock[queue]'",
    "RegistrationError": "Correct the registration",
    "ScheduleError": "The schedule cannot be used",
    "DurationError": "Give a positive duration",
    "DeferError": "Nothing was deferred",
    "OnceError": "it was not kept",
    "ItemError": "`flask cron items` lists the keys",
    "UnknownTask": "decorate the function with @cron.task",
    "ArgumentError": "a datetime by isoformat()",
    "TransactionAborted": "keep each inside db.session.begin_nested()",
}


def test_every_error_has_a_row_here() -> None:
    assert {kind.__name__ for kind in CLASSES} == set(ROWS) | set(OUTSIDE_REQUESTS)


@pytest.mark.parametrize("name", ROWS)
def test_every_error_has_its_status_and_words_and_a_message_that_names_its_cure(name: str) -> None:
    error = getattr(exceptions, name)("SELECT secret FROM detail")
    status, words, cure = ROWS[name]

    if isinstance(error, (RefusedRun, Unavailable)):
        answer = of_error(error, {"job": "x"})
    else:
        assert isinstance(error, RunError)
        answer = of_outcome(Failed(error, job="x"), 200)

    assert (answer.status, answer.body["error"], answer.body["job"]) == (status, words, "x")
    assert "SELECT" not in json.dumps(answer.body)
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert cure in str(error)


@pytest.mark.parametrize("name", OUTSIDE_REQUESTS)
def test_every_error_at_set_up_names_its_cure(name: str) -> None:
    assert OUTSIDE_REQUESTS[name] in str(getattr(exceptions, name)())


def test_retry_after_is_a_number_of_seconds() -> None:
    assert int(of_error(Unavailable(), {}).headers["Retry-After"]) > 0


@pytest.mark.parametrize("error", [ValueError("SELECT 1"), SystemExit(3), KeyError("Traceback")])
def test_what_a_job_raised_is_not_told(error: BaseException) -> None:
    run_id = uuid4()

    answer = of_outcome(Failed(error, job="x", run_id=run_id), 200)

    assert answer.status == 500
    assert answer.body == {
        "job": "x",
        "outcome": "failed",
        "error": "Job failed",
        "slot": None,
        "run": str(run_id),
    }


def test_a_slot_is_told_with_its_offset() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    slot = datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1)

    body = of_outcome(Ran(1, job="x", slot=slot, duration=timedelta(milliseconds=12.6)), 200).body

    assert body["slot"] == "2026-10-25T02:30:00+01:00"
    assert body["duration_ms"] == 13


@pytest.mark.parametrize("reason", Reason)
def test_only_already_running_takes_the_status_in_flight(reason: Reason) -> None:
    status = of_outcome(Skipped(reason, job="x"), 409).status

    assert status == (409 if reason is Reason.ALREADY_RUNNING else 200)


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no repr")


LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        None,
        Decimal("1.10"),
        datetime(2026, 1, 1, tzinfo=UTC),
        {1, 2},
        b"bytes",
        (n for n in "generator"),
        float("nan"),
        float("inf"),
        "x" * 5_000_000,
        "\U0001f600" * 5000,
        "é" * 5000,
        "\0\x1f" * 400,
        "\ud800 lone",
        '"' * 495,
        "\\" * 5000,
        LOOP,
        DEEP,
        ("x", 500),
        {("a", 1): 2},
        {1: "one", "1": "uno", None: 0},
        10**5000,
        10**400,
        Unprintable(),
        object,
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_job_returns_the_body_is_short_json(value: Any) -> None:
    moment = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    outcome = Ran(
        value,
        job="j" * 63,
        slot=moment,
        next_slot=moment,
        run_id=uuid4(),
        instance="i" * 100 + "/4194304",
        duration=timedelta(days=24),
    )

    answer = of_outcome(outcome, 200)

    assert answer.status == 200
    assert len(json.dumps(answer.body)) < 1024
    assert len(value_text(value)) <= LONGEST_VALUE


def test_what_json_has_a_form_for_is_told_as_it_is() -> None:
    for value in [None, 0, 3.5, "text", [1, 2], {"sent": 3}]:
        assert of_outcome(Ran(value), 200).body["processed"] == value


def test_a_long_text_is_told_from_its_start() -> None:
    told = of_outcome(Ran("x" * 5000), 200).body["processed"]

    assert told.startswith("'xxx")
    assert told.endswith("…")
    assert len(told) > 300


def test_a_value_that_holds_a_secret_is_told_without_it() -> None:
    secret = b'it\'s-a-"secret"-of-length'

    for value in [secret.decode(), {"Authorization": f"Bearer {secret.decode()}"}, secret]:
        told = json.dumps(of_outcome(Ran(value), 200, [secret]).body)
        assert "[secret]" in told
        assert "of-length" not in told
