"""One process of a crowd: it waits for the word, runs a job again and again, tells each outcome.

Usage: racer.py JOB ROUNDS PAUSE [SLOT…]. With SLOTs it runs each, and asks again as long as the job
is running, as a scheduler that retries does.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import datetime
from typing import Any

from . import without

without.apply(os.environ.get("CRONLOCK_MUTANTS", ""))

from flask_cronlock import Outcome, Ran, Reason, Skipped  # noqa: E402

from .jobs_app import app, cron, db, mark  # noqa: E402

PATIENCE = 1.0
"""Seconds that a body waits for another one to come."""


@cron.job("quick", every="1s", max_lateness="1d")
def quick() -> None:
    mark("begin")


@cron.job("daily", every="1d")
def daily() -> str:
    """Return what this process takes for the time."""
    mark("begin")
    return datetime.now().astimezone().isoformat()


@cron.job("meeting")
def meeting() -> bool:
    """Wait for another body at the same time, and return whether one came."""
    mark("begin")
    until = time.monotonic() + PATIENCE
    while not (met := bodies() > 1) and time.monotonic() < until:
        time.sleep(0.01)
    mark("end")
    return met


@cron.job("count-up")
def count_up() -> None:
    """Read, wait, write: right only as long as nobody else does the same."""
    count = db.session.scalar(db.text("SELECT n FROM counter"))
    time.sleep(random.uniform(0, 0.01))
    db.session.execute(db.text("UPDATE counter SET n = :n"), {"n": count + 1})


def bodies() -> int:
    """Return how many bodies ever began; each marks that on a connection of its own."""
    with db.engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        found = connection.scalar(db.text("SELECT count(*) FROM mark WHERE job LIKE 'begin%'"))
    return int(found)


def run_settled(job: str, slot: datetime) -> Outcome:
    while True:
        outcome = cron.run(job, slot=slot)
        if not isinstance(outcome, Skipped) or outcome.reason is not Reason.ALREADY_RUNNING:
            return outcome
        time.sleep(random.uniform(0, 0.005))


def told(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Ran(value):
            word, more = "ran", value
        case Skipped(reason):
            word, more = reason.value, None
        case _:
            word, more = "failed", repr(outcome.error)
    slot = outcome.slot.isoformat() if outcome.slot else None
    return {"word": word, "value": more, "slot": slot}


def main(job: str, rounds: str, pause: str, *slots: str) -> None:
    with app.app_context():
        db.session.execute(db.text("SELECT 1"))
        db.session.remove()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        time.sleep(float(pause))
        if slots:
            outcomes = [run_settled(job, datetime.fromisoformat(slot)) for slot in slots]
        else:
            outcomes = [cron.run(job) for _ in range(int(rounds))]
        json.dump([told(outcome) for outcome in outcomes], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
