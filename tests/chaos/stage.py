"""What chaos plays on: PostgreSQL, PgBouncer before it, and instances behind that."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..support.databases import Database, Server, fresh_database, temporary
from ..support.instances import ROOT, Instance, environment, gunicorn
from ..support.pgbouncer import PgBouncer, pgbouncer_before
from .history import history_file, named
from .work import EFFECTS

KEEPS_COMMITS = {"synchronous_commit": "on"}
"""A server stopped at once must not forget what it said it had committed. Nothing need be synced
for that: the machine itself does not crash."""


POOLER = {"default_pool_size": 30, "query_wait_timeout": 2}
"""A client that finds no backend free is told so within its own patience."""


@dataclass
class Stage:
    """All that can be hurt."""

    database: Database
    pooler: PgBouncer
    folder: Path
    """Where the history is written."""
    instances: dict[str, Instance] = field(default_factory=dict)
    _frozen: dict[int, threading.Timer] = field(default_factory=dict)

    @property
    def server(self) -> Server:
        return self.database.server

    def workers(self) -> list[tuple[str, int]]:
        """Return name and pid of each worker that has come up, and is not frozen."""
        return [
            (name, pid)
            for name, instance in self.instances.items()
            for pid in instance.workers()
            if pid not in self._frozen and history_file(self.folder, named(name, pid)).exists()
        ]

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def freeze(self, pid: int, seconds: float) -> None:
        """Stop a worker, and let it go on after some seconds."""
        os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, self._thaw, [pid])
        self._frozen[pid] = timer
        timer.start()

    def _thaw(self, pid: int) -> None:
        # Its master reaps no frozen worker, so the number is still that worker's.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self._frozen.pop(pid, None)

    def thaw_all(self) -> None:
        for pid, timer in list(self._frozen.items()):
            timer.cancel()
            self._thaw(pid)


@contextmanager
def stage(folder: Path, seed: int, instances: int) -> Iterator[Stage]:
    """Set up everything; the history's folder gets the instances' logs at the end."""
    with (
        temporary(KEEPS_COMMITS) as server,
        fresh_database(server) as database,
        pgbouncer_before(server, **POOLER) as pooler,
        ExitStack() as life,
    ):
        made, url = Stage(database, pooler, folder), pooler.url(database)
        _make_tables(database, folder)
        for number in range(1, instances + 1):
            name = f"web.{number}"
            # The last one finds out about a stale connection only at its first statement.
            pre_ping = "no" if number == instances else "yes"
            about = {"CHAOS_HISTORY": str(folder), "CHAOS_PRE_PING": pre_ping}
            web = gunicorn(
                database,
                url=url,
                name=name,
                target="tests.chaos.app:app",
                CHAOS_SEED=str(seed),
                **about,
            )
            made.instances[name] = life.enter_context(web)
            life.callback(shutil.copy, made.instances[name].log, folder / f"{name}.log")
        life.callback(made.thaw_all)
        yield made


def _make_tables(database: Database, folder: Path) -> None:
    database.query(EFFECTS)
    about = {"CHAOS_HISTORY": str(folder), "CHAOS_PRE_PING": "yes", "CHAOS_SEED": ""}
    subprocess.run(
        [sys.executable, "-m", "flask", "--app", "tests.chaos.app", "cron", "init-db"],
        cwd=ROOT,
        env=environment(database, DYNO="setup", **about),
        check=True,
        capture_output=True,
    )
