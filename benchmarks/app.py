"""The sample app with empty jobs, and views that do without Flask-CronLock."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from flask_cronlock import Run
from sample_app import create_app as create_sample_app
from sample_app.digest import ZONE, write_digests
from sample_app.extensions import cron, db

from . import by_hand

SECRET = "for-benchmarks-on-loopback-only"
WINS = 1_000
"""Jobs that can be won, each once: a real run of a real slot, and no two of the same."""

# Twelve hours from now, so that no slot begins while we measure.
HOUR = (datetime.now(ZoneInfo(ZONE)).hour + 12) % 24
SCHEDULE = f"0 {HOUR} * * *"


def nothing() -> None:
    """Be the job that costs nothing, so that only the run is measured."""


@cron.job("digest", schedule=SCHEDULE, tz=ZONE, max_lateness="20000d")
def digest(run: Run) -> int:
    """Write the digests of any slot, old ones too."""
    assert run.slot
    return write_digests(run.session, run.slot)


for name in ("ran", "held", *(f"win-{number}" for number in range(WINS))):
    cron.job(name, schedule=SCHEDULE, tz=ZONE)(nothing)
# What a job's first run finds out for the later ones; most of these have only one.
for job in cron.jobs:
    schedule = job.schedule(ZONE)
    slot = schedule and schedule.newest(datetime.now(UTC))
    if schedule and slot:
        schedule.previous(slot)
        schedule.next(slot.at)


def create_app(url: str | None = None) -> Flask:
    """Return the app, on the database *url* or that of ``DATABASE_URL``."""
    app = create_sample_app({"SQLALCHEMY_DATABASE_URI": url} if url else None)
    app.add_url_rule("/empty", view_func=empty, methods=["POST"])
    app.add_url_rule("/by-hand/<job>", view_func=handle, methods=["POST"])
    return app


def empty() -> ResponseReturnValue:
    return jsonify({})


def handle(job: str) -> ResponseReturnValue:
    """Do what the endpoint does, as one would write it for one's own app."""
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {SECRET}".encode()):
        return jsonify(error="Unauthorized"), 401
    slot = by_hand.newest_slot(HOUR)
    outcome = by_hand.run(db.session(), job, slot)
    return jsonify(job=job, slot=slot.isoformat(), outcome=outcome)
