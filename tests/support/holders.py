"""Runs that hold their lock until told otherwise: frozen, killed, or past every limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from flask_cronlock import Outcome

from .databases import Database
from .instances import start_run
from .processes import wait_until
from .sites import Site
from .worlds import World

NO_LIMITS = """
SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN
  ('transaction_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')
"""


@dataclass(frozen=True)
class Holder:
    """A run of a job of ``jobs_app`` in a process of its own."""

    process: subprocess.Popen[str]

    @property
    def name(self) -> str:
        """What a contender is told of it."""
        return f"web.1/{self.process.pid}"

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def wake(self) -> dict[str, Any]:
        """Let it go on, and return its answer."""
        self.process.send_signal(signal.SIGCONT)
        output, log = self.process.communicate(timeout=30)
        assert output, log
        answer: dict[str, Any] = json.loads(output)
        return answer


@contextmanager
def holding(site: Site, job: str, timeout: float, seconds: float = 60) -> Iterator[Holder]:
    """Run *job*, which takes *seconds*, until the end of the block; it has begun by its start."""
    settings = {"JOB_TIMEOUT": f"{timeout}s", "JOB_SECONDS": str(seconds), "DYNO": "web.1"}
    with start_run(site.database, job, url=site.url, **settings) as process:
        try:
            mark = f"begin {process.pid}"
            wait_until(lambda: site.database.query("SELECT 1 FROM mark WHERE job = %s", mark))
            yield Holder(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


@contextmanager
def escaped(world: World, name: str, timeout: float) -> Iterator[Future[Outcome]]:
    """Hold the lock *name* in a thread that has freed itself from the limits of its *timeout*."""
    held, let_go = threading.Event(), threading.Event()

    def work(session: Session) -> str:
        session.execute(world.db.text(NO_LIMITS))
        held.set()
        assert let_go.wait(30)
        return "unhurried"

    def hold() -> Any:
        with world.app.app_context():
            return world.cron.with_lock(name, work, timeout=timeout)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(hold)
        try:
            assert held.wait(30), future.exception(0)
            yield future
        finally:
            let_go.set()


def free(database: Database) -> bool:
    """Tell whether no advisory lock is held."""
    return database.advisory_locks() == 0
