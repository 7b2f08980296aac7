"""How far a process's memory grows while it defers.

``python -m benchmarks.queue.memory defer_from 1000`` prints the kilobytes by which the process was
larger at its largest than before the run, as Linux tells them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flask_cronlock import Ran, Run

from ..server import Database
from .app import BATCH, TIMES, User, create_app, cron, db, mail, mails, set_up, slots, stamped

ROOT = Path(__file__).parents[2]
RESET = Path("/proc/self/clear_refs")
USERS = "INSERT INTO users SELECT FROM generate_series(1, :users)"


@dataclass(frozen=True)
class Growth:
    """The kilobytes by which a process grew, by way, for each number of users."""

    users: Sequence[int]
    kilobytes: Mapping[str, Sequence[int]]


def measure(database: Database, users: Sequence[int]) -> Growth | None:
    """Defer to so many users as named, each time in a process of its own; on Linux only."""
    if not RESET.exists():
        return None
    set_up(create_app(database.url))
    grown = {way: [_grown(database, way, count) for count in users] for way in WAYS}
    return Growth(users, grown)


def _grown(database: Database, way: str, users: int) -> int:
    command = [sys.executable, "-m", "benchmarks.queue.memory", way, str(users)]
    environment = {**os.environ, "DATABASE_URL": database.url}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    with database.connect(autocommit=True) as connection:
        connection.execute("TRUNCATE users, procrastinate_jobs RESTART IDENTITY CASCADE")
    return int(done.stdout)


def main(way: str, users: int) -> None:
    """Defer once to nobody, so that all is loaded, and then to *users*."""
    job = f"{way}-{users}"
    cron.job(job, **TIMES)(lambda run: WAYS[way](run, run.session.query(User).count()))
    slot = slots()
    with create_app().app_context():
        cron.run(job, slot=next(slot))
        with db.engine.begin() as connection:
            connection.execute(db.text(USERS), {"users": users})
        RESET.write_text("5")
        before = peak()
        outcome = cron.run(job, slot=next(slot))
        grown = peak() - before
        db.engine.dispose()
    if not (isinstance(outcome, Ran) and outcome.value == users):
        raise RuntimeError(f"not {users} mails, but {outcome}")
    print(grown)


def peak() -> int:
    """Return the kilobytes of this process at its largest since the reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def through_the_client(run: Run, users: int) -> int:
    """Fetch all that is to be deferred, as one should not."""
    rows = run.session.execute(stamped(run, users)).mappings().all()
    return run.defer_many(mail, [dict(row) for row in rows], batch=BATCH)


WAYS: Mapping[str, Callable[[Run, int], int]] = {
    "defer_from": lambda run, users: run.defer_from(mail, stamped(run, users), batch=BATCH),
    "defer_many": lambda run, users: run.defer_many(mail, mails(users), batch=BATCH),
    "fetched_first": through_the_client,
}

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
