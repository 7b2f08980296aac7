"""Very many runs in one process leave nothing behind: ``python -m tests.endurance --runs 100000``.

Every kind of run takes its turn; now and then a run loses its backend, or runs out of time. The
first fifth of the runs warms the process up: caches fill, the pool opens its connection. From there
to the end these must not grow:

- connections, those out of the pool, file descriptors, threads and advisory locks: not by one;
- the blocks that Python has allocated, after a collection: by no more than one in fifty runs;
- resident memory: by no more than 1 MiB or 2 %, whichever is more.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flask_cronlock import Failed, Ran, Reason, Skipped
from flask_cronlock.exceptions import JobTimeout, LockLost

from .support.databases import ADVISORY_LOCKS, Database, fresh_database, temporary
from .support.processes import wait_until
from .support.worlds import World, world_on

BLOCKS_PER_RUN = 0.02
LEAST_BLOCKS = 200
"""What a sample itself, and what Python does at times, may take."""
LEAST_GROWTH = 1 << 20
GROWTH = 0.02
HELD = "held"
RARE = 500
"""Of so many runs one meets each kind of fault; the first ones early, while all is warming up."""


@dataclass(frozen=True)
class Sample:
    """What the process has, and what the server has for it."""

    runs: int
    rss: int
    blocks: int
    fds: int
    threads: int
    connections: int
    out: int
    locks: int


class Mix:
    """Every kind of run, one after the other; each is checked to be what it should be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.slots = itertools.count()
        self.base = datetime.now(UTC).replace(microsecond=0) - timedelta(days=30)
        self.slot = self.base
        self._register()
        kinds = [self.win, self.repeat, self.fail, self.force, self.lock, self.break_lock]
        kinds += [self.run_without_slots, self.meet_holder, self.post, self.post_failing]
        self.kinds: itertools.cycle[Callable[[], None]] = itertools.cycle(kinds)
        self.turns = itertools.count()
        self.faulty = {RARE // 10: self.lose_backend, RARE // 5: self.run_out_of_time}

    def _register(self) -> None:
        world = self.world
        self._job("winner", lambda: world.note("kept"), every="1s", max_lateness="60d")
        self._job("plain", lambda: {"kept": 1})
        self._job("failing", self._raise)
        self._job(HELD, lambda: None)
        self._job("orphaned", self._end_backend)
        self._job("idle", self._idle)

    def _job(self, name: str, work: Callable[[], Any], **how: Any) -> None:
        self.world.cron.job(name, **how)(work)

    def _raise(self) -> None:
        self.world.note("undone")
        raise ValueError("as asked")

    def _end_backend(self) -> None:
        self.world.probe.execute("SELECT pg_terminate_backend(%s, 30000)", [self._backend()])
        self.world.note("undone")

    def _idle(self) -> None:
        """Outstay a limit that is short from now on only: a busy machine may begin late."""
        limit = "SELECT set_config('idle_in_transaction_session_timeout', '10ms', true)"
        backend, db = self._backend(), self.world.db
        db.session.execute(db.text(limit))
        lives = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: self.world.probe.execute(lives, [backend]).fetchone() == (0,))
        self.world.note("undone")

    def _backend(self) -> Any:
        return self.world.db.session.scalar(self.world.db.text("SELECT pg_backend_pid()"))

    def turn(self) -> None:
        turn = self.faulty.get(next(self.turns) % RARE) or next(self.kinds)
        turn()

    def lose_backend(self) -> None:
        self._see_failure("orphaned", LockLost)

    def run_out_of_time(self) -> None:
        self._see_failure("idle", JobTimeout)

    def _see_failure(self, job: str, kind: type[Exception]) -> None:
        outcome = self.world.run(job)
        assert isinstance(outcome, Failed), outcome
        assert type(outcome.error) is kind, outcome

    def win(self) -> None:
        self.slot = self.base + timedelta(seconds=next(self.slots))
        assert isinstance(self.world.run("winner", slot=self.slot), Ran)

    def repeat(self) -> None:
        outcome = self.world.run("winner", slot=self.slot)
        assert isinstance(outcome, Skipped), outcome
        assert outcome.reason is Reason.ALREADY_RAN

    def fail(self) -> None:
        assert isinstance(self.world.run("failing"), Failed)

    def force(self) -> None:
        assert isinstance(self.world.run("winner", force=True), Ran)

    def lock(self) -> None:
        with self.world.app.app_context():
            self.world.cron.with_lock(("customer", 42), lambda session: self.world.note("kept"))

    def break_lock(self) -> None:
        with self.world.app.app_context():
            try:
                self.world.cron.with_lock("customers", lambda session: self._raise())
            except ValueError:
                return
        raise AssertionError("the work's error was lost")

    def run_without_slots(self) -> None:
        assert isinstance(self.world.run("plain"), Ran)

    def meet_holder(self) -> None:
        outcome = self.world.run(HELD)
        assert isinstance(outcome, Skipped), outcome
        assert outcome.reason is Reason.ALREADY_RUNNING

    def post(self) -> None:
        assert self.world.post("plain").status_code == 200

    def post_failing(self) -> None:
        assert self.world.post("failing").status_code == 500


def take_sample(world: World, runs: int) -> Sample:
    gc.collect()
    with world.app.app_context():
        out: int = world.db.engine.pool.checkedout()  # type: ignore[attr-defined]
    connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    [(found,)] = world.probe.execute(connections)
    [(locks,)] = world.probe.execute(f"SELECT count(*) FROM {ADVISORY_LOCKS}")
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        runs=runs,
        rss=pages * os.sysconf("SC_PAGE_SIZE"),
        blocks=sys.getallocatedblocks(),
        fds=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        connections=found,
        out=out,
        locks=locks,
    )


def what_grew(samples: list[Sample], warm: int) -> list[str]:
    """Return in words what did not stay flat from *warm* runs to the end."""
    first, last = next(s for s in samples if s.runs >= warm), samples[-1]
    room = {
        "rss": max(LEAST_GROWTH, int(first.rss * GROWTH)),
        "blocks": LEAST_BLOCKS + int((last.runs - first.runs) * BLOCKS_PER_RUN),
    }
    grown = {
        field.name: getattr(last, field.name) - getattr(first, field.name)
        for field in fields(Sample)
        if field.name != "runs"
    }
    return [
        f"{name} grew by {growth:,} from run {first.runs:,} to {last.runs:,}; "
        f"{room.get(name, 0):,} is allowed"
        for name, growth in grown.items()
        if growth > room.get(name, 0)
    ]


@contextmanager
def world_with_a_holder(database: Database) -> Iterator[World]:
    """Yield a world in which somebody else has the lock of one job all the time."""
    with world_on(database) as world, closing(database.connect()) as holder:
        holder.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [HELD])
        yield world


def endure(database: Database, runs: int, every: int) -> list[Sample]:
    """Make *runs* runs, and print and return a sample for each *every* of them."""
    with world_with_a_holder(database) as world:
        mix, samples = Mix(world), []
        begun = time.monotonic()
        print(*(f"{field.name:>11}" for field in fields(Sample)), f"{'seconds':>8}")
        for number in range(runs + 1):
            if number % every == 0 or number == runs:
                samples.append(take_sample(world, number))
                figures = (f"{figure:>11,}" for figure in astuple(samples[-1]))
                print(*figures, f"{time.monotonic() - begun:>8.0f}", flush=True)
            mix.turn()
        return samples


def log_to_nowhere() -> None:
    """Have every record formatted, tracebacks too, as an app's log does."""
    logger = logging.getLogger("flask_cronlock")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(os.devnull))
    logger.propagate = False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=10_000, help="runs between two samples")
    words = parser.parse_args()
    log_to_nowhere()
    with temporary() as server, fresh_database(server) as database:
        samples = endure(database, words.runs, words.every)
    grew = what_grew(samples, words.runs // 5)
    print("\n".join(grew) or "Flat: nothing was left behind.")
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
