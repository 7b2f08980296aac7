"""An app for real processes: jobs that sleep, write, fail or hang, as their environment says.

Each job body marks its beginning and end on a connection of its own, so that marks survive a
rollback and show what overlapped.
"""

from __future__ import annotations

import os
import time

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run

db = SQLAlchemy()
cron = CronLock(db)

SECONDS = float(os.environ.get("JOB_SECONDS", "0"))
TIMEOUT = os.environ.get("JOB_TIMEOUT", "60s")
EVERY = "1d"


def mark(what: str) -> None:
    with psycopg.connect(os.environ["PROBE_CONNINFO"], autocommit=True) as probe:
        probe.execute(
            "INSERT INTO mark (job, at) VALUES (%s, clock_timestamp())", [f"{what} {os.getpid()}"]
        )


def note(text: str) -> None:
    db.session.execute(db.text("INSERT INTO note VALUES (:text)"), {"text": text})


@cron.job("idle", every=EVERY, timeout=TIMEOUT)
def idle(run: Run) -> str:
    """Write, then work in Python while the transaction is idle."""
    note(f"idle {run.slot}")
    mark("begin")
    time.sleep(SECONDS)
    mark("end")
    return "done"


@cron.job("in-sql", every=EVERY, timeout=TIMEOUT)
def in_sql() -> None:
    """Write, then wait in one long statement."""
    note("in-sql")
    mark("begin")
    db.session.execute(db.text("SELECT pg_sleep(:seconds)"), {"seconds": SECONDS})
    mark("end")


@cron.job("stepwise", every=EVERY, timeout=TIMEOUT)
def stepwise() -> None:
    """Sleep in steps of 0.1 s with a statement in between."""
    mark("begin")
    for _ in range(round(SECONDS * 10)):
        db.session.execute(db.text("SELECT 1"))
        time.sleep(0.1)
    mark("end")


@cron.job("big-result", every=EVERY, timeout=TIMEOUT)
def big_result() -> int:
    """Read a result larger than any socket buffer, 1 MB every 20 ms."""
    note("big-result")
    mark("begin")
    rows = db.session.execute(
        db.text("SELECT repeat('x', 1000000), pg_sleep(0.02) FROM generate_series(1, 500)")
    )
    count = len(rows.all())
    mark("end")
    return count


@cron.job("copy-in", every=EVERY, timeout=TIMEOUT)
def copy_in() -> None:
    """Stop in the middle of sending rows to the server."""
    driver = db.session.connection().connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    with driver.cursor() as cursor, cursor.copy("COPY note FROM STDIN") as copy:
        copy.write_row(["copy-in"])
        mark("begin")
        time.sleep(SECONDS)
    mark("end")


@cron.job("failing", every=EVERY, timeout=TIMEOUT)
def failing() -> None:
    note("failing")
    mark("begin")
    raise ValueError("as asked")


def create_app() -> Flask:
    app = Flask("jobs")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={"pool_size": 5, "connect_args": {"prepare_threshold": None}},
    )
    db.init_app(app)
    cron.init_app(app)
    if os.environ.get("CONNECT_AT_IMPORT"):
        with app.app_context(), db.engine.connect() as connection:
            connection.execute(db.text("SELECT 1"))
    return app


app = create_app() if "DATABASE_URL" in os.environ else None
