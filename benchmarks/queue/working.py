"""Working off mails that do nothing: many a row of the queue, one a row, and by Procrastinate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from sqlalchemy import func, select

from ..rounds import Timing
from ..server import Database
from . import by_hand
from .app import BATCH, create_app, cron, db, mail, mails, set_up

ROOT = Path(__file__).parents[2]
CONCURRENCY = 4
SHARE_OF_ROWS = 40
"""The ways that take a row of the queue for each mail work off that part of them."""
OURS = ("flask", "--app", "benchmarks.queue.app", "cron", "worker", "--until-empty")
BEGAN, ENDED = "The worker began", "The worker stopped"
DONE = "SELECT count(*) FROM cronlock_item WHERE state = 'done'"
LEFT = "SELECT count(*) FROM procrastinate_jobs"
CLEAN = "TRUNCATE cronlock_item, procrastinate_jobs CASCADE", "VACUUM", "CHECKPOINT"
MANY, EACH = f"Flask-CronLock, {BATCH} mails a row", "Flask-CronLock, a mail a row"
PLAIN = "Procrastinate alone, a mail a row"


@dataclass(frozen=True)
class Crew:
    """One way of working off: how many mails, how they are deferred, and the worker's command."""

    name: str
    mails: int
    defer: Callable[[], None]
    command: Sequence[str]


@dataclass(frozen=True)
class Worked:
    """What was measured: the seconds for each mail, by way."""

    crews: Sequence[Crew]
    timing: Timing


def measure(database: Database, items: int, rounds: int) -> Worked:
    """Work off *items* in each way, *rounds* times, forwards and backwards in turn."""
    app = create_app(database.url)
    set_up(app)
    with app.app_context():
        crews = _crews(database, items, max(items // SHARE_OF_ROWS, 1))
        seconds: dict[str, list[float]] = {crew.name: [] for crew in crews}
        for number in range(rounds):
            for crew in crews[:: -1 if number % 2 else 1]:
                seconds[crew.name].append(_work(crew, database) / crew.mails)
        db.engine.dispose()
    return Worked(crews, Timing("working", seconds, batch=1))


def _crews(database: Database, many: int, few: int) -> list[Crew]:
    def ours(items: int, batch: int) -> None:
        users = select(func.generate_series(1, items).label("user_id"))
        cron.defer_from(db.session, mail, users, batch=batch)
        db.session.commit()

    def plain() -> None:
        with db.engine.begin() as connection:
            by_hand.defer_in_chunks(connection, mails(few))

    at_once = str(CONCURRENCY)
    our_worker = (*OURS, f"--concurrency={at_once}")
    plain_worker = ("benchmarks.queue.plain_worker", database.conninfo, at_once)
    return [
        Crew(MANY, many, lambda: ours(many, BATCH), our_worker),
        Crew(EACH, few, lambda: ours(few, 1), our_worker),
        Crew(PLAIN, few, plain, plain_worker),
    ]


def _work(crew: Crew, database: Database) -> float:
    """Return the seconds from the worker's beginning to its end, in a process of its own."""
    with database.connect(autocommit=True) as watch:
        for statement in CLEAN:
            watch.execute(statement)
        crew.defer()
        watch.execute("ANALYZE")
        seconds, said = _run(crew.command, database.url)
        counts = [watch.execute(query).fetchone() for query in (DONE, LEFT)]
    done, left = (row[0] for row in counts if row)
    if told := re.search(rf"{ENDED}: (\d+) done", said):
        done = int(told[1])
    if (done, left) != (crew.mails, 0):
        raise RuntimeError(f"{crew.name}: {done} of {crew.mails}, {left} rows left:\n{said}")
    return seconds


def _run(command: Sequence[str], url: str) -> tuple[float, str]:
    began = ended = 0.0
    lines = []
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            if BEGAN in line:
                began = perf_counter()
            elif ENDED in line:
                ended = perf_counter()
    said = "".join(lines)
    if process.returncode or not 0 < began < ended:
        raise RuntimeError(f"the worker ended with {process.returncode}:\n{said}")
    return ended - began, said
