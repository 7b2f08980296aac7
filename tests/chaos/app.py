"""The app that chaos is set upon: many jobs of one kind, and a history of all that is asked."""

from __future__ import annotations

import itertools
import os
import random
import time
from datetime import UTC

from flask import Flask, Response, g, request
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run

from .answers import word_for
from .history import Recorder, named
from .work import Work

JOBS = tuple(f"job-{number:02}" for number in range(20))
TIMEOUT = 3.0
"""Seconds; some freezes are longer."""
SLOT_HEADER = "X-Chaos-Slot"
FAILS, COMMITS = 0.04, 0.3
"""The shares of bodies that raise after the write, and that commit the session on their way."""

db = SQLAlchemy()
cron = CronLock(db)


class Body:
    """The work of every job, as one process does it."""

    def __init__(self, recorder: Recorder, seed: str) -> None:
        self._history, self._random = recorder, random.Random(seed)

    def __call__(self, run: Run) -> None:
        assert run.slot is not None
        slot = run.slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        work = Work(self._history, db.session, run.job, slot, str(run.id))
        work.write()
        if self._random.random() < FAILS:
            raise RuntimeError("as planned")
        if self._random.random() < COMMITS:
            work.commit()
        for _ in range(self._random.randint(1, 4)):
            time.sleep(self._random.uniform(0.001, 0.02))
            work.look()
        work.end()


def tell_of_requests(app: Flask, recorder: Recorder) -> None:
    """Write down each request when it arrives, and when it has its answer."""
    numbers = itertools.count(1)

    @app.before_request
    def arrive() -> None:
        g.job, g.slot = request.path.rpartition("/")[2], request.headers.get(SLOT_HEADER, "")
        g.number = next(numbers)
        recorder.write("arrive", g.job, g.slot, request=g.number)

    @app.after_request
    def leave(response: Response) -> Response:
        word = word_for(response.status_code, response.get_json(silent=True) or {})
        recorder.write("leave", g.job, g.slot, detail=word, request=g.number)
        return response


def create_app() -> Flask:
    name = os.environ["DYNO"]
    recorder = Recorder(os.environ["CHAOS_HISTORY"], named(name, os.getpid()))
    body = Body(recorder, f"{os.environ['CHAOS_SEED']} {name}")
    for job in JOBS:
        cron.job(job, every="1s", max_lateness="7d", timeout=TIMEOUT)(body)
    app = Flask("chaos")
    app.config.update(
        SQLALCHEMY_DATABASE_URI=os.environ["DATABASE_URL"],
        SQLALCHEMY_ENGINE_OPTIONS={
            "pool_size": 5,
            "pool_pre_ping": os.environ["CHAOS_PRE_PING"] == "yes",
        },
        CRONLOCK_SLOT_HEADER=SLOT_HEADER,
    )
    tell_of_requests(app, recorder)
    db.init_app(app)
    cron.init_app(app)
    return app


app = create_app() if "CHAOS_HISTORY" in os.environ else None
