"""An app with two jobs, each of whose runs is marked: ``idle``, any number of times, and ``daily``,
once for each slot that a request names."""

from __future__ import annotations

import os

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run

from .fuzz_bytes import SLOT_HEADER

db = SQLAlchemy()
cron = CronLock(db)


@cron.job("idle")
@cron.job("daily", every="1d", max_lateness="36000d")
def marked(run: Run) -> None:
    with psycopg.connect(os.environ["PROBE_CONNINFO"], autocommit=True) as probe:
        probe.execute("INSERT INTO mark VALUES (%s, clock_timestamp())", [run.job])


def create_app() -> Flask:
    app = Flask("fuzzed")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={"pool_size": 1, "max_overflow": 0},
        CRONLOCK_SLOT_HEADER=SLOT_HEADER,
    )
    db.init_app(app)
    cron.init_app(app)
    return app


app = create_app() if "DATABASE_URL" in os.environ else None
