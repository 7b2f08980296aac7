"""Clocks as real processes, and what they leave behind in the database."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from .databases import Database
from .instances import ROOT, Instance, environment, gunicorn
from .processes import wait_until

APP = "tests.support.clock_app"
TABLES = """
CREATE TABLE begun (job text, slot timestamptz, pid int, at timestamptz, host_at timestamptz);
CREATE TABLE effect (job text, slot timestamptz, pid int)
"""
TRACEBACK = "Traceback (most recent call last)"

Jobs = Mapping[str, Mapping[str, Any]]


@dataclass
class Process:
    """A ``flask`` command that goes on, and its log."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, words: str, seconds: float = 30) -> None:
        """Wait until it has said *words*; fail when it ends before."""

        def heard() -> bool:
            if words in self.said():
                return True
            assert self.popen.poll() is None, self.said()
            return False

        wait_until(heard, seconds)

    def send(self, number: int) -> None:
        self.popen.send_signal(number)

    def end(self, number: int = signal.SIGTERM, seconds: float = 40) -> int:
        """Send it a signal, and return the status that it ends with."""
        self.popen.send_signal(number)
        return self.popen.wait(seconds)


@dataclass(frozen=True)
class Stage:
    """A database for the jobs of ``clock_app``, and the processes that run them."""

    database: Database

    def __post_init__(self) -> None:
        self.database.query(TABLES)

    @contextmanager
    def clock(
        self, jobs: Jobs, *options: str, url: str | None = None, **extra: str
    ) -> Iterator[Process]:
        """Run ``flask cron clock``; it has begun by the start of the block."""
        with self.flask("cron", "clock", *options, jobs=jobs, url=url, **extra) as process:
            process.wait_for("The clock began")
            yield process

    @contextmanager
    def flask(
        self, *words: str, jobs: Jobs, url: str | None = None, **extra: str
    ) -> Iterator[Process]:
        """Run a ``flask`` command until the end of the block, and then it and all its children."""
        with tempfile.TemporaryDirectory(prefix="cronlock-clock-") as folder:
            log = Path(folder) / "log"
            with log.open("wb") as output:
                popen = subprocess.Popen(
                    [sys.executable, "-m", "flask", "--app", APP, *words],
                    cwd=ROOT,
                    env=self.environment(jobs, url, **extra),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            try:
                yield Process(popen, log)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(popen.pid, signal.SIGKILL)
                popen.wait(10)

    @contextmanager
    def web(
        self, jobs: Jobs, *options: str, url: str | None = None, name: str = "web.1", **extra: str
    ) -> Iterator[Instance]:
        """Serve ``clock_app`` with gunicorn."""
        extra |= {"CLOCK_JOBS": json.dumps(jobs)}
        target = f"{APP}:app"
        with gunicorn(self.database, *options, url=url, name=name, target=target, **extra) as web:
            yield web

    def environment(self, jobs: Jobs, url: str | None = None, **extra: str) -> dict[str, str]:
        return environment(self.database, url, CLOCK_JOBS=json.dumps(jobs), **extra)

    def now(self) -> datetime:
        """Return the time by the database's clock."""
        moment: datetime = self.database.value("SELECT clock_timestamp()")
        return moment

    def begun(self, job: str) -> list[datetime]:
        """Return the slots that job code began to run for, in the order of their beginnings."""
        return self._slots("SELECT slot FROM begun WHERE job = %s ORDER BY at", job)

    def effects(self, job: str) -> list[datetime]:
        """Return the slots that took effect, oldest first."""
        return self._slots("SELECT slot FROM effect WHERE job = %s ORDER BY slot", job)

    def ledger(self, job: str, state: str = "done") -> list[datetime]:
        """Return the slots in a state, oldest first."""
        return self._slots(
            "SELECT scheduled_at FROM cronlock_run WHERE job = %s AND state = %s"
            " ORDER BY scheduled_at",
            job,
            state,
        )

    def _slots(self, statement: str, *values: str) -> list[datetime]:
        return [row[0] for row in self.database.query(statement, *values)]

    def wait_for_effects(self, job: str, count: int, seconds: float = 40) -> None:
        wait_until(lambda: len(self.effects(job)) >= count, seconds)

    def wait_for_begun(self, job: str, count: int = 1, seconds: float = 40) -> None:
        wait_until(lambda: len(self.begun(job)) >= count, seconds)


def gaps(slots: list[datetime], every: float) -> Counter[float]:
    """Return how often each step from slot to slot is there, in intervals: 1 is no gap."""
    return Counter((b - a).total_seconds() / every for a, b in pairwise(slots))


def ran_every_slot_once(stage: Stage, job: str, every: float) -> None:
    """Check that all slots from the first to the last took effect, each once, as the ledger says.

    Nor did job code begin for one more often, which a rollback would hide.
    """
    slots = stage.effects(job)
    assert set(gaps(slots, every)) == {1.0}, slots
    assert stage.ledger(job) == slots
    assert sorted(stage.begun(job)) == slots
