"""An app for workers in real processes.

Each task marks its beginnings and ends on a connection of its own, which survives a rollback, and
``note`` writes a row through ``db.session``, which does not. WORKER_TIMES, a JSON object such as
``{"heart.BEAT_EVERY": 1}``, shortens what a worker waits for.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import threading
import time
from typing import Any

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock

db = SQLAlchemy()
cron = CronLock(db)

MARK = "INSERT INTO called VALUES (%s, %s, %s, %s, clock_timestamp())"
NOTE = db.text("INSERT INTO noted VALUES (:name)")

for place, seconds in json.loads(os.environ.get("WORKER_TIMES", "{}")).items():
    module, constant = place.split(".")
    setattr(importlib.import_module(f"flask_cronlock.queue.{module}"), constant, seconds)


@functools.cache
def probe(thread: int) -> psycopg.Connection[Any]:
    """Return this thread's own connection."""
    return psycopg.connect(os.environ["PROBE_CONNINFO"], autocommit=True)


def mark(event: str, name: str) -> None:
    thread = threading.get_ident()
    probe(thread).execute(MARK, [name, event, os.getpid(), thread % 2**31])


def mark_when_possible(event: str, name: str) -> None:
    while True:
        try:
            mark(event, name)
        except psycopg.OperationalError:
            probe.cache_clear()
            time.sleep(0.5)
        else:
            return


@cron.task("note", key="name", timeout="2h")
def note(name: str, seconds: float = 0) -> None:
    mark("begun", name)
    db.session.execute(NOTE, {"name": name})
    time.sleep(seconds)
    mark("ended", name)


@cron.task("call", queue="mail", delivery="at_least_once", key="name", timeout="2h")
def call(name: str, seconds: float = 0) -> None:
    """Be busy without the database, as one that sends a mail is."""
    mark("begun", name)
    time.sleep(seconds)
    mark_when_possible("ended", name)


if os.environ.get("NEWER_RELEASE"):
    cron.task("newer", key="name")(note)


def create_app(**config: Any) -> Flask:
    app = Flask("queued")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={
            "pool_size": int(os.environ.get("POOL_SIZE", "5")),
            "max_overflow": 0,
            "connect_args": {"prepare_threshold": None},
        },
        CRONLOCK_ENABLED="SWITCHED_OFF" not in os.environ,
        CRONLOCK_NAMESPACE=os.environ.get("NAMESPACE"),
        **config,
    )
    db.init_app(app)
    cron.init_app(app)
    return app


app = create_app() if "DATABASE_URL" in os.environ else None
