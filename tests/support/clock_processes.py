"""Clocks as real processes, and what they leave behind in the database."""

from __future__ import annotations

import json
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
from .logged import Process, logged
from .processes import wait_until

APP = "tests.support.clock_app"
TABLES = """
CREATE TABLE begun (job text, slot timestamptz, pid int, at timestamptz, host_at timestamptz);
CREATE TABLE effect (job text, slot timestamptz, pid int)
"""
TRACEBACK = "Traceback (most recent call last)"

Jobs = Mapping[str, Mapping[str, Any]]


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
            command = [sys.executable, "-m", "flask", "--app", APP, *words]
            with logged(command, log, cwd=ROOT, env=self.environment(jobs, url, **extra)) as made:
                yield made

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
