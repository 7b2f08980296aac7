"""The job that every tool runs: a row, a few steps, the end."""

from __future__ import annotations

import random
import time
from typing import Protocol

from sqlalchemy import Engine
from sqlalchemy.orm import Session, scoped_session

from tests.chaos.history import Recorder
from tests.chaos.work import Work

from .hit import Hit

STEPS = 4
PAUSE = (0.02, 0.07)


class Body:
    """Writes its effect into the session's transaction, which somebody else commits."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __call__(self, session: Session | scoped_session[Session], hit: Hit) -> None:
        pauses = random.Random(f"{hit.job} {hit.slot}")
        work = Work(self.recorder, session, hit.job, hit.slot, hit.run)
        work.write()
        for _ in range(STEPS):
            time.sleep(pauses.uniform(*PAUSE))
            work.look()
        work.end()


class Lock(Protocol):
    """A lock as other libraries have it; one that cannot be had is not waited for."""

    def acquire(self) -> bool: ...

    def release(self) -> object: ...


def run_under(lock: Lock, engine: Engine, body: Body, hit: Hit) -> str:
    """Run *body* in a transaction of its own while *lock* is held; return what became of it."""
    if not lock.acquire():
        return "already running"
    try:
        with Session(engine) as session, session.begin():
            body(session, hit)
    finally:
        lock.release()
    return "ran"
