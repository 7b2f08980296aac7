"""Flask-CronLock: lock, claim and work in one transaction."""

from __future__ import annotations

from datetime import datetime

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Failed, Outcome, Ran, Run, Skipped
from flask_cronlock.exceptions import OutcomeUnknown

from .body import Body
from .hit import JOBS, LIMIT, Hit, Place

db = SQLAlchemy()
cron = CronLock(db)


def create_app(url: str) -> Flask:
    app = Flask("faults")
    app.config["SQLALCHEMY_DATABASE_URI"] = url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {"connect_args": {"prepare_threshold": None}}
    db.init_app(app)
    cron.init_app(app)
    return app


def create_tables(url: str) -> None:
    with create_app(url).app_context():
        db.create_all()
        db.engine.dispose()


class ByCronLock:
    def __init__(self, place: Place, body: Body) -> None:
        self.app, self.body = create_app(place.url), body
        for number in range(JOBS):
            cron.job(f"job-{number}", every="1s", max_lateness="20000d", timeout=LIMIT)(self.work)

    def work(self, run: Run) -> None:
        assert run.slot
        self.body(run.session, Hit(run.job, run.slot.isoformat(), str(run.id)))

    def fire(self, hit: Hit) -> str:
        with self.app.app_context():
            outcome = cron.run(hit.job, slot=datetime.fromisoformat(hit.slot))
        hit.run = str(outcome.run_id or "")
        return word(outcome)


def word(outcome: Outcome) -> str:
    match outcome:
        case Ran(_):
            return "ran"
        case Skipped(reason):
            return reason.value
        case Failed(OutcomeUnknown()):
            return "unknown"
    return "failed"
