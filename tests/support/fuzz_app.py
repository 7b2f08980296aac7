"""An app with one job, ``idle``, that can run any number of times, and marks each."""

from __future__ import annotations

import os

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock

db = SQLAlchemy()
cron = CronLock(db)


@cron.job
def idle() -> None:
    with psycopg.connect(os.environ["PROBE_CONNINFO"], autocommit=True) as probe:
        probe.execute("INSERT INTO mark VALUES ('idle', clock_timestamp())")


def create_app() -> Flask:
    app = Flask("fuzzed")
    app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"]
    db.init_app(app)
    cron.init_app(app)
    return app


app = create_app() if "DATABASE_URL" in os.environ else None
