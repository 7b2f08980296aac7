"""One execution of a job that tells the history all it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session, scoped_session

from .history import Recorder, now

EFFECTS = "CREATE TABLE effect (job text, slot text, run text)"
EFFECT = text("INSERT INTO effect VALUES (:job, :slot, :run)")
LOOK = text("SELECT 1")


class Work:
    """It has begun when it is made; its effect is one row, in the session's transaction."""

    def __init__(
        self,
        recorder: Recorder,
        session: Session | scoped_session[Any],
        job: str,
        slot: str,
        run: str,
    ) -> None:
        self._recorder, self._session = recorder, session
        self._about = job, slot, run
        recorder.write("begin", *self._about)

    def write(self) -> None:
        job, slot, run = self._about
        effect = {"job": job, "slot": slot, "run": run}
        self._step("write", lambda: self._session.execute(EFFECT, effect))

    def look(self) -> None:
        self._step("look", lambda: self._session.execute(LOOK))

    def commit(self) -> None:
        self._step("commit", self._session.commit)

    def end(self) -> None:
        self._recorder.write("end", *self._about)

    def _step(self, what: str, do: Callable[[], object]) -> None:
        before = now()
        do()
        self._recorder.write("step", *self._about, detail=what, at=before)
