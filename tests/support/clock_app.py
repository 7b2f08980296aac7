"""An app for clocks in real processes; its jobs are those of CLOCK_JOBS, a JSON object.

A job's settings there are those of ``cron.job``, and ``seconds``: how long its body sleeps. Each
body marks its beginning on a connection of its own, which survives a rollback, and then writes a
row through ``db.session``, which does not. With START_CLOCK the app starts a clock as it is made.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from typing import Any

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run

db = SQLAlchemy()
cron = CronLock(db)

BEGUN = "INSERT INTO begun VALUES (%s, %s, %s, clock_timestamp(), to_timestamp(%s))"
STARTED = "a clock was started in this process"
EFFECT = db.text("INSERT INTO effect VALUES (:job, :slot, :pid)")


@functools.cache
def probe(pid: int) -> psycopg.Connection[Any]:
    """Return this process's own connection."""
    return psycopg.connect(os.environ["PROBE_CONNINFO"], autocommit=True)


def body(seconds: float) -> Callable[[Run], None]:
    def work(run: Run) -> None:
        pid = os.getpid()
        probe(pid).execute(BEGUN, [run.job, run.slot, pid, time.time()])
        run.session.execute(EFFECT, {"job": run.job, "slot": run.slot, "pid": pid})
        time.sleep(seconds)

    return work


for name, how in json.loads(os.environ.get("CLOCK_JOBS", "{}")).items():
    work = body(how.pop("seconds", 0))
    cron.job(name, **how)(work)


def create_app() -> Flask:
    app = Flask("clocked")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={"pool_size": 5, "connect_args": {"prepare_threshold": None}},
    )
    db.init_app(app)
    cron.init_app(app)
    if os.environ.get("START_CLOCK"):
        started = cron.start_clock(app)
        app.logger.warning(STARTED if started else "no clock was started")
    return app


app = create_app() if "DATABASE_URL" in os.environ else None
