"""Runs that take their statements one at a time, in an order that a test chooses.

Each run goes on in a thread of its own, over connections that hold it before every statement that
is sent, COMMIT and ROLLBACK too. Nothing sleeps to make an order happen: a run that waits in
PostgreSQL for another one is known by what the server says of its backend.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from flask_cronlock import Outcome

PATIENCE = 60
"""Seconds after which a run that neither goes on nor waits for another has hung."""
LOOK = 0.002
"""Seconds between two looks at a run whose statement is at work."""
GATE = 20240229
"""The first half of the keys of locks that hold a run inside its statement."""
TRIES_INSIDE_A_GATE = f"""
CREATE FUNCTION public.pg_try_advisory_xact_lock(key bigint) RETURNS boolean VOLATILE
LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_lock({GATE}, pg_backend_pid());
  PERFORM pg_advisory_unlock({GATE}, pg_backend_pid());
  RETURN pg_catalog.pg_try_advisory_xact_lock(key);
END $$
"""
"""Splits the statement that tries the lock: its snapshot is one step, the try is the next."""

WORDS = {
    "transaction_timeout": "limits",
    "pg_lock_status": "holder",
    "hashtextextended": "try",
    "DO NOTHING": "missed",
    "INSERT INTO cronlock_run": "claim",
    "SELECT anon_1.state": "standing",
    "INSERT INTO note": "job",
    "value=": "done",
    "error=": "broken",
    "SELECT cronlock_run.id": "there?",
    "INSERT INTO cronlock_attempt": "attempt",
    "set_config('lock_timeout'": "patience",
    "pg_current_xact_id_if_assigned": "proof",
    "ROLLBACK TO": "ROLLBACK TO",
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
    "COMMIT": "COMMIT",
}
"""What a statement is called that has these words in it; the first that fits."""
_current = threading.local()


class Runner:
    """One run in a thread of its own, held before each of its statements.

    :param together: the steps that it takes together with the one before them.
    """

    def __init__(self, name: str, together: Collection[str] = ()) -> None:
        self.name, self._together = name, together
        self.at: str | None = None
        """The step that it is held before, or whose statement is at work."""
        self.held = self.inside = False
        self.pid = 0
        self.future: Future[Outcome]
        self._go, self._news = threading.Semaphore(0), SimpleQueue[str | None]()
        self._free = False

    @staticmethod
    def current() -> Runner | None:
        """Return the one whose thread this is."""
        found: Runner | None = getattr(_current, "runner", None)
        return found

    def start(self, pool: Executor, call: Callable[[], Outcome]) -> None:
        self.future = pool.submit(self._run, call)

    def _run(self, call: Callable[[], Outcome]) -> Outcome:
        _current.runner = self
        try:
            return call()
        finally:
            _current.runner = None
            self._news.put(None)

    def hold(self, step: str, connection: psycopg.Connection[Any]) -> None:
        """Wait, in its own thread, until the step may be taken."""
        if self._free or step in self._together:
            return
        self.pid = connection.info.backend_pid
        self._news.put(step)
        assert self._go.acquire(timeout=2 * PATIENCE), "no test let the run go on"

    def go(self) -> None:
        self.held = False
        self._go.release()

    def arrives(self, within: float) -> bool:
        """Tell whether it is held before another step, or has ended."""
        try:
            self.at = self._news.get(timeout=within)
        except Empty:
            return False
        self.held = self.at is not None
        return True

    def let_go(self) -> None:
        """Hold it no more."""
        self._free = True
        self._go.release()


class SteppedCursor(psycopg.Cursor[Any]):
    """Holds the run before each statement."""

    def execute(self, query: Any, *values: Any, **how: Any) -> Any:
        if (runner := Runner.current()) is not None:
            runner.hold(word_for(str(query)), self.connection)
        return super().execute(query, *values, **how)


class SteppedConnection(psycopg.Connection[Any]):
    """Holds the run before each COMMIT and ROLLBACK that is sent for it."""

    def commit(self) -> None:
        self._hold("COMMIT")
        super().commit()

    def rollback(self) -> None:
        self._hold("ROLLBACK")
        super().rollback()

    def _hold(self, step: str) -> None:
        runner = Runner.current()
        if runner is not None and self.info.transaction_status != TransactionStatus.IDLE:
            runner.hold(step, self)


def word_for(statement: str) -> str:
    """Return what a step is called in an order."""
    for part, word in WORDS.items():
        if part in statement:
            return word
    raise AssertionError(f"a statement that no order has a word for: {statement}")


class Stage:
    """Lets one run at a time take its next step, and knows which of them wait for another.

    :param control: looks on, and holds the gates.
    :param split: whether the database has the gate in the statement that tries the lock.
    """

    def __init__(
        self, control: psycopg.Connection[Any], runners: Sequence[Runner], split: bool = False
    ) -> None:
        self.control, self.runners, self.split = control, runners, split
        self.taken: list[tuple[Runner, str]] = []
        """The steps in the order in which they were over."""
        for runner in runners:
            assert runner.arrives(PATIENCE), f"{runner.name} never began"

    @property
    def ready(self) -> list[Runner]:
        """Those that can take a step."""
        return [runner for runner in self.runners if runner.held]

    @property
    def over(self) -> bool:
        return all(runner.at is None for runner in self.runners)

    def named(self, name: str) -> Runner:
        return next(runner for runner in self.runners if runner.name == name)

    def wait_for(self, runner: Runner) -> None:
        """Return when *runner* waits for no other any more."""
        began = time.monotonic()
        while runner in self._waiting() and not self._settle(runner):
            assert time.monotonic() < began + PATIENCE, f"{runner.name} waits for ever: {self}"

    def step(self, runner: Runner) -> None:
        """Let *runner* take its step, and all others go as far as that lets them."""
        assert runner.held, f"{runner.name} cannot take a step: {self}"
        if runner.inside:
            runner.held = runner.inside = False
            self._gate("pg_advisory_unlock", runner)
        else:
            if self.split and runner.at == "try":
                self._gate("pg_advisory_lock", runner)
            runner.go()
        self._settle(runner)
        while any(self._settle(other, 0) for other in self._waiting()):
            pass

    def _waiting(self) -> list[Runner]:
        return [one for one in self.runners if one.at is not None and not one.held]

    def _settle(self, runner: Runner, look: float = LOOK) -> bool:
        """Return once it is held, has ended (true), or waits for another (false)."""
        began, step = time.monotonic(), str(runner.at)
        while not runner.arrives(look):
            look = LOOK
            blockers = self._ask("SELECT pg_blocking_pids(%s)", runner.pid)
            if self.control.info.backend_pid in blockers:
                self.taken.append((runner, step))
                runner.at, runner.held, runner.inside = "lock", True, True
                return True
            if blockers:
                return False
            assert time.monotonic() < began + PATIENCE, f"{runner.name} hangs: {self}"
        self.taken.append((runner, step))
        return True

    def _gate(self, function: str, runner: Runner) -> None:
        self._ask(f"SELECT {function}({GATE}, %s)", runner.pid)

    def _ask(self, question: str, *values: Any) -> Any:
        row = self.control.execute(question, values).fetchone()
        assert row is not None
        return row[0]

    def __str__(self) -> str:
        return " ".join(f"{runner.name}:{step}" for runner, step in self.taken)
