"""Workers as real processes, and what they do to the rows of the queue."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.types.json import Jsonb

from flask_cronlock.queue.tasks import queue_name

from .databases import Database
from .instances import ROOT, environment
from .logged import Process, logged
from .processes import wait_until
from .worlds import world_on

APP = "tests.support.queue_app"
FLASK = (sys.executable, "-m", "flask")
TABLES = """
CREATE TABLE called (name text, event text, pid int, thread bigint, at timestamptz);
CREATE TABLE noted (name text)
"""
DEFER = """
SELECT unnest(procrastinate_defer_jobs_v1(array_agg(
    ROW(%s, %s, 0, NULL, NULL, %s, NULL)::procrastinate_job_to_defer_v1)))
"""
QUICK = {
    "heart.BEAT_EVERY": 1,
    "heart.STALLED_AFTER": 8,
    "heart.STEADY_AFTER": 3,
    "keeper.LOOK_EVERY": 2,
    "keeper.NOBODYS_EVERY": 4,
}
"""Waits that a test can wait for, and far enough apart for a busy machine."""


@dataclass(frozen=True)
class Workshop:
    """A database with the queue's tables, and the workers of an app on it."""

    database: Database
    app: str = APP

    def set_up(self) -> None:
        """Make all tables."""
        with world_on(self.database):
            pass
        self.database.query(TABLES)

    @contextmanager
    def worker(
        self,
        *options: str,
        url: str | None = None,
        begins: bool = True,
        times: dict[str, float] = QUICK,
        **extra: str,
    ) -> Iterator[Process]:
        """Run ``flask cron worker``; by the start of the block it has begun."""
        extra = {"WORKER_TIMES": json.dumps(times), **extra}
        command = [*FLASK, "--app", self.app, "cron", "worker", *options]
        with tempfile.TemporaryDirectory(prefix="cronlock-worker-") as folder:
            log = Path(folder) / "log"
            env = environment(self.database, url, **extra)
            with logged(command, log, cwd=ROOT, env=env) as process:
                if begins:
                    process.wait_for("The worker began")
                yield process

    def defer(
        self, task: str, *names: str, queue: str = "default", seconds: float = 0
    ) -> list[int]:
        """Defer one row for each name; return their numbers in the queue."""
        return [self.defer_together(task, name, queue=queue, seconds=seconds) for name in names]

    def defer_together(
        self, task: str, *names: str, queue: str = "default", seconds: float = 0
    ) -> int:
        """Defer one row for all names; return its number in the queue."""
        origin = {"namespace": "", "scope": "tests/now", "job": None, "slot": None}
        items = [{"name": name, "seconds": seconds} for name in names]
        args = Jsonb({"items": items, "origin": origin})
        name = queue if "." in queue else queue_name("", queue)
        return int(self.database.value(DEFER, name, task, args))

    def defer_until_heard(self, name: str) -> None:
        """Defer rows, a second apart, until a worker that is told of one has done all of them.

        It misses those that come before it listens, or while it looks.
        """
        numbers = itertools.count()

        def heard() -> bool:
            self.defer("note", f"{name}-{next(numbers)}")
            time.sleep(1)
            return not self.rows()

        wait_until(heard)

    def shorten(self, row: int) -> None:
        """Let the next call of a row with one item take no time."""
        self.lengthen(row, 0)

    def lengthen(self, row: int, seconds: float) -> None:
        """Let the next call of a row with one item take *seconds*."""
        self.database.query(
            "UPDATE procrastinate_jobs SET args = jsonb_set(args, '{items,0,seconds}', %s)"
            " WHERE id = %s",
            Jsonb(seconds),
            row,
        )

    def rows(self) -> dict[int, str]:
        """Return the state of each row that is in the queue."""
        return dict(self.database.query("SELECT id, status::text FROM procrastinate_jobs"))

    def events(self, event: str, name: str | None = None) -> list[str]:
        """Return the names for which a task had come to an *event*, in order."""
        found = self.database.query(
            "SELECT name FROM called WHERE event = %s AND name = coalesce(%s, name) ORDER BY at",
            event,
            name,
        )
        return [row[0] for row in found]

    def begun(self, name: str | None = None) -> list[str]:
        return self.events("begun", name)

    def ended(self, name: str | None = None) -> list[str]:
        return self.events("ended", name)

    def noted(self) -> list[str]:
        """Return what was written through ``db.session`` and is kept."""
        return [row[0] for row in self.database.query("SELECT name FROM noted ORDER BY name")]

    def wait_for_begun(self, name: str, count: int = 1, seconds: float = 40) -> None:
        wait_until(lambda: len(self.begun(name)) >= count, seconds)

    def wait_for_ended(self, name: str, count: int = 1, seconds: float = 40) -> None:
        wait_until(lambda: len(self.ended(name)) >= count, seconds)

    def wait_until_empty(self, seconds: float = 40) -> None:
        wait_until(lambda: not self.rows(), seconds)
