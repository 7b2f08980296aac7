"""A server crashes in the COMMIT of a run, and gives the run's id to somebody else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from flask_cronlock.exceptions import LockLost, OutcomeUnknown
from flask_cronlock.transaction import GuardedTransaction

from ..support.databases import Database, fresh_database, temporary
from ..support.outcomes import LONG, error_of
from ..support.processes import wait_until
from ..support.programs import find_old_postgres
from ..support.worlds import World, world_on

LOSING = {
    "synchronous_commit": "on",
    "wal_writer_delay": "10s",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
"""Nobody but a commit writes out what a transaction did."""
HELD_COMMIT = """
CREATE TABLE held (text text);
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON held
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold();
CHECKPOINT
"""
COMMITTING = "FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'"


class Accident:
    """A world whose COMMIT is held by the server until that is gone."""

    def __init__(self, world: World) -> None:
        self.world, self.database = world, world.database
        for statement in HELD_COMMIT.split(";\n"):
            world.probe.execute(statement)
        self.xid = 0
        self.over = threading.Event()

    def work(self, *_: object) -> None:
        self.world.note("sent")
        session, text = self.world.db.session, self.world.db.text
        session.execute(text("INSERT INTO held VALUES ('x')"))
        self.xid = int(session.scalar(text("SELECT pg_current_xact_id()::text")))

    def happen(self, crash: Callable[[Database], None]) -> None:
        """Crash in the COMMIT, and let others write until the id is one of theirs, or too old."""
        try:
            wait_until(lambda: bool(self.database.query(f"SELECT 1 {COMMITTING}")))
            crash(self.database)
            wait_until(lambda: answers(self.database))
            with self.database.connect() as other:
                while written(other) < self.xid:
                    pass
        finally:
            self.over.set()


def written(connection: psycopg.Connection[Any]) -> int:
    """Commit a transaction, and return its id."""
    row = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert row is not None
    return int(row[0])


def answers(database: Database) -> bool:
    try:
        return bool(database.value("SELECT NOT pg_is_in_recovery()"))
    except psycopg.Error:
        return False


def kill_the_server(database: Database) -> None:
    database.server.stop("kill")
    database.server.start()


def kill_a_backend(database: Database) -> None:
    """The postmaster stays; it ends all others, and begins anew."""
    with database.connect() as another:
        os.kill(database.value(f"SELECT pid {COMMITTING}"), signal.SIGKILL)
        wait_until(lambda: ended(another))


def ended(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return True
    return False


@contextmanager
def accident_on(patch: pytest.MonkeyPatch, binaries: Path | None = None) -> Iterator[Accident]:
    """Yield an accident after which, not before, the lost COMMIT is asked for."""
    settle: Any = GuardedTransaction._settle
    with (
        temporary(LOSING, bin=binaries) as server,
        fresh_database(server) as database,
        world_on(database) as world,
    ):
        accident = Accident(world)

        def settle_later(*about: object) -> None:
            assert accident.over.wait(60), "the server never came back"
            settle(*about)

        patch.setattr(GuardedTransaction, "_settle", settle_later)
        yield accident


def lock_and_crash(accident: Accident, crash: Callable[[Database], None]) -> None:
    def work() -> None:
        with accident.world.app.app_context():
            accident.world.cron.with_lock("cache", accident.work)

    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(work)
        accident.happen(crash)
        with pytest.raises((OutcomeUnknown, LockLost)):
            told.result(60)
    assert accident.world.notes == []


def run_and_crash(accident: Accident, crash: Callable[[Database], None]) -> None:
    world = accident.world
    world.cron.job("digest", every=LONG)(accident.work)
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(world.run, "digest")
        accident.happen(crash)
        assert type(error_of(told.result(60))) is LockLost
    assert (world.notes, world.runs(), len(world.attempts())) == ([], [], 1)


@pytest.mark.parametrize("crash", [kill_the_server, kill_a_backend])
def test_work_under_a_lock_that_was_not_kept_is_not_told_that_it_was(
    monkeypatch: pytest.MonkeyPatch, crash: Callable[[Database], None]
) -> None:
    with accident_on(monkeypatch) as accident:
        lock_and_crash(accident, crash)


def test_nor_is_it_where_a_backend_of_an_old_postgres_crashed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with accident_on(monkeypatch, find_old_postgres()) as accident:
        lock_and_crash(accident, kill_a_backend)


def test_a_run_that_was_not_kept_by_a_server_that_crashed_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with accident_on(monkeypatch) as accident:
        run_and_crash(accident, kill_the_server)


def test_a_run_that_a_standby_had_not_heard_of_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with accident_on(monkeypatch) as accident:
        server = accident.database.server
        behind = server.data.with_name("behind")
        server.stop()
        subprocess.run(["cp", "-a", server.data, behind], check=True)
        server.start()

        def fail_over(_: Database) -> None:
            server.stop("kill")
            shutil.rmtree(server.data)
            behind.rename(server.data)
            server.start()

        run_and_crash(accident, fail_over)
