"""The app that chaos is set upon: many jobs of one kind, whose bodies tell the history all."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import UTC

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run

from .history import Recorder, now

JOBS = tuple(f"job-{number:02}" for number in range(20))
TIMEOUT = 3.0
"""Seconds; some freezes are longer."""
SLOT_HEADER = "X-Chaos-Slot"
EFFECTS = "CREATE TABLE effect (job text, slot text, run text)"
FAILS, COMMITS = 0.04, 0.3
"""The shares of bodies that raise after the write, and that commit the session on their way."""

db = SQLAlchemy()
cron = CronLock(db)

EFFECT = db.text("INSERT INTO effect VALUES (:job, :slot, :run)")
LOOK = db.text("SELECT 1")


class Body:
    """The work of every job, as one process does it."""

    def __init__(self, folder: str, name: str, seed: str) -> None:
        self._history = Recorder(folder, f"{name}-{os.getpid()}")
        self._random = random.Random(f"{seed} {name}")

    def __call__(self, run: Run) -> None:
        assert run.slot is not None
        slot = run.slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        effect = {"job": run.job, "slot": slot, "run": str(run.id)}
        about = run.job, slot, str(run.id)
        self._history.write("begin", *about)
        self._step(about, "write", lambda: db.session.execute(EFFECT, effect))
        if self._random.random() < FAILS:
            raise RuntimeError("as planned")
        if self._random.random() < COMMITS:
            self._step(about, "commit", db.session.commit)
        for _ in range(self._random.randint(1, 4)):
            time.sleep(self._random.uniform(0.001, 0.02))
            self._step(about, "look", lambda: db.session.execute(LOOK))
        self._history.write("end", *about)

    def _step(self, about: tuple[str, str, str], what: str, do: Callable[[], object]) -> None:
        before = now()
        do()
        self._history.write("step", *about, detail=what, at=before)


def create_app() -> Flask:
    body = Body(os.environ["CHAOS_HISTORY"], os.environ["DYNO"], os.environ["CHAOS_SEED"])
    for name in JOBS:
        cron.job(name, every="1s", max_lateness="7d", timeout=TIMEOUT)(body)
    app = Flask("chaos")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={
            "pool_size": 5,
            "pool_pre_ping": os.environ["CHAOS_PRE_PING"] == "yes",
        },
        CRONLOCK_SLOT_HEADER=SLOT_HEADER,
    )
    db.init_app(app)
    cron.init_app(app)
    return app


app = create_app() if "CHAOS_HISTORY" in os.environ else None
