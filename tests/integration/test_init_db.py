"""``flask cron init-db``: safe to repeat, and on several dynos at once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_cronlock import Ran

from ..support.commands import cron, fails, stranger_to
from ..support.databases import Database
from ..support.instances import ROOT, environment
from ..support.processes import wait_until
from ..support.worlds import bare_world

INIT_DB_KEY = """hashtextextended('["cronlock","init-db"]', 0)"""


def test_init_db_makes_the_tables_and_may_be_repeated(database: Database) -> None:
    with bare_world(database) as world:
        for _ in range(2):
            result = cron(world, "init-db")
            assert result.exit_code == 0, result.output
            assert "cronlock_run" in result.stdout
        world.cron.job("digest", every="1d")(lambda: 3)
        assert isinstance(world.run("digest"), Ran)


@pytest.mark.parametrize("route", ["pgbouncer"], indirect=True)
def test_four_init_db_at_once_in_processes_all_succeed(database: Database, route: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "flask", "--app", "tests.support.jobs_app", "cron", "init-db"],
            cwd=ROOT,
            env=environment(database, route),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert all("cronlock_run" in stdout and not stderr for stdout, stderr in outputs)
    made = database.query("SELECT tablename FROM pg_tables WHERE tablename ~ '^cronlock_'")
    names = ["attempt", "item", "job", "migration", "request", "run"]
    assert sorted(made) == [(f"cronlock_{name}",) for name in names]


@pytest.mark.parametrize("namespace", [None, "app"])
def test_init_db_of_every_namespace_waits_for_its_turn(
    database: Database, namespace: str | None
) -> None:
    """The tables are shared by all namespaces, so two apps must not make them at once."""
    with (
        bare_world(database, CRONLOCK_NAMESPACE=namespace) as world,
        database.connect() as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute(f"SELECT pg_advisory_lock({INIT_DB_KEY})")
        result = pool.submit(cron, world, "init-db")
        try:
            wait_until(
                lambda: (
                    result.done()
                    or database.value("SELECT count(*) FROM pg_locks WHERE NOT granted")
                )
            )
            assert not result.done()
        finally:
            other.execute("SELECT pg_advisory_unlock_all()")
        assert result.result().exit_code == 0


def test_init_db_by_a_role_that_may_not_make_tables_says_so(database: Database) -> None:
    with stranger_to(database) as url, bare_world(database, url=url) as world:
        result = cron(world, "init-db")
    fails(result, 1, "as a role that may make the tables")
    assert "permission denied" in result.stderr


def test_tables_of_another_version_are_not_taken_for_ours(database: Database) -> None:
    with bare_world(database) as world:
        cron(world, "init-db")
        database.query("ALTER TABLE cronlock_run DROP COLUMN forced")

        fails(cron(world, "init-db"), 1, "of another version: run the migrations")
