"""The faults: a plan that a seed decides, and the hand that carries it out."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from .app import TIMEOUT
from .history import Recorder, named, now
from .stage import Stage

SHARES = {
    "end backend": 0.56,
    "freeze worker": 0.30,
    "kill worker": 0.12,
    "restart pooler": 0.015,
    "stop postgres": 0.005,
}
FREEZES = [((0.05, 0.6), 0.85), ((0.6, 2.0), 0.11), ((TIMEOUT + 1.2, TIMEOUT + 2.5), 0.04)]
"""How long, and the share of it: the last are frozen for longer than their runs may take."""
LONGEST_FREEZE = TIMEOUT + 2.5
OUTAGES = (0.1, 1.0)
PACE = 2.0
"""Seconds after which the next fault comes, however slowly the slots are done. Faults that come
faster than a busy machine gets over them would leave nothing to be hurt."""
CANDIDATES = """
SELECT pid, coalesce(application_name LIKE 'cronlock%' AND state <> 'idle', false)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass(frozen=True)
class Fault:
    kind: str
    seconds: float
    """How long a worker is frozen, or a server is gone."""
    pick: float
    """Which of those that can be hit, from 0 up to 1."""


def plan(seed: int, count: int) -> Iterator[Fault]:
    """Yield faults without end; among each *count* of them is at least one of each kind."""
    chance = random.Random(f"faults {seed}")
    while True:
        kinds = [
            kind for kind, share in SHARES.items() for _ in range(max(1, round(share * count)))
        ]
        chance.shuffle(kinds)
        yield from (_fault(kind, chance) for kind in kinds)


def _fault(kind: str, chance: random.Random) -> Fault:
    freeze = chance.choices([span for span, _ in FREEZES], [share for _, share in FREEZES])[0]
    span = freeze if kind == "freeze worker" else OUTAGES
    return Fault(kind, chance.uniform(*span), chance.random())


class Hand:
    """Carries out faults one after the other, spread evenly over the slots."""

    def __init__(self, stage: Stage, told: Recorder, seed: int, count: int, slots: int) -> None:
        self._stage, self._plan = stage, plan(seed, count)
        self._history = told
        self._count, self._slots_each = count, slots / count
        self.done = 0
        self.did_all = threading.Event()
        """Set once there were as many as were asked for, or none will come any more."""

    def work(self, slots_done: threading.Semaphore, over: threading.Event) -> None:
        """Bring the next fault whenever its share of the slots is done, or nothing goes on."""
        due = 0.0
        try:
            while not over.is_set():
                due += self._slots_each
                while due >= 1:
                    due = due - 1 if slots_done.acquire(timeout=PACE) else 0
                self._carry_out(next(self._plan))
                if self.done == self._count:
                    self.did_all.set()
        finally:
            self.did_all.set()

    def _carry_out(self, fault: Fault) -> None:
        begun = now()
        # Whom it was to hit may just have gone; the database may be slow to come back.
        with suppress(ProcessLookupError, psycopg.OperationalError):
            whom = getattr(self, "_" + fault.kind.replace(" ", "_"))(fault)
            if whom is None:
                return
            self._history.write("fault", detail=f"{fault.kind}: {whom}", at=begun)
            self.done += 1

    def _end_backend(self, fault: Fault) -> str | None:
        """End a backend: one with a run in it, if there is one."""
        stage = self._stage
        with stage.database.connect(connect_timeout=5) as admin:
            found = admin.execute(CANDIDATES).fetchall()
            pids = [pid for pid, running in found if running] or [pid for pid, _ in found]
            if not pids:
                return None
            pid = pids[int(fault.pick * len(pids))]
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
        return f"{pid}"

    def _freeze_worker(self, fault: Fault) -> str | None:
        if (worker := self._worker(fault)) is None:
            return None
        self._stage.freeze(worker[1], fault.seconds)
        return f"{named(*worker)} for {fault.seconds:.2f} s"

    def _kill_worker(self, fault: Fault) -> str | None:
        if (worker := self._worker(fault)) is None:
            return None
        self._stage.kill(worker[1])
        return named(*worker)

    def _worker(self, fault: Fault) -> tuple[str, int] | None:
        workers = self._stage.workers()
        return workers[int(fault.pick * len(workers))] if workers else None

    def _restart_pooler(self, fault: Fault) -> str:
        with self._outage():
            self._stage.pooler.restart(fault.seconds)
        return f"gone for {fault.seconds:.2f} s"

    def _stop_postgres(self, fault: Fault) -> str:
        server = self._stage.server
        with self._outage():
            server.stop("immediate")
            try:
                threading.Event().wait(fault.seconds)
            finally:
                server.start()
        return f"gone for {fault.seconds:.2f} s"

    @contextmanager
    def _outage(self) -> Iterator[None]:
        """Write down from when to when a server is gone that everybody needs."""
        self._history.write("gone")
        yield
        self._history.write("back")
