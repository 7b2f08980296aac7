"""``flask cron holders``: who holds which lock, since when."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from ..support.bodies import Gate, running
from ..support.commands import stranger_to
from ..support.databases import Database
from ..support.instances import start_run
from ..support.processes import wait_until
from ..support.worlds import World, bare_world


def holders(world: World) -> list[dict[str, Any]]:
    result = world.app.test_cli_runner().invoke(args=["cron", "holders", "--json"])
    assert result.exit_code == 0, result.output
    records: list[dict[str, Any]] = json.loads(result.stdout)
    return records


def lines(world: World) -> list[str]:
    result = world.app.test_cli_runner().invoke(args=["cron", "holders"])
    assert result.exit_code == 0, result.output
    return list(result.stdout.splitlines())


@pytest.fixture
def with_digest(gate: Gate) -> Callable[[World], World]:
    def add(world: World) -> World:
        world.cron.job("digest", every="1d")(gate.hold)
        return world

    return add


@pytest.fixture
def world(
    make_world: Callable[..., World], route: str, with_digest: Callable[[World], World]
) -> World:
    return with_digest(make_world(url=route, CRONLOCK_INSTANCE="web.7"))


def test_nobody_holds_anything(world: World) -> None:
    assert lines(world) == ["No advisory lock is held in this database."]
    assert holders(world) == []


def test_a_run_of_ours_is_shown_with_instance_pid_and_start(world: World, gate: Gate) -> None:
    with running(world, "digest", gate):
        [record] = holders(world)
        heads, line = lines(world)
    assert heads.split() == ["JOB", "PID", "INSTANCE", "SINCE", "STATE"]
    assert record["job"] == "digest"
    assert record["instance"] == f"web.7/{os.getpid()}"
    assert record["ours"] is True
    assert record["overdue"] is False
    assert record["state"] == "idle in transaction"
    since = datetime.fromisoformat(record["since"])
    assert datetime.now(UTC) - since < timedelta(minutes=2)
    assert line.split()[:3] == ["digest", str(record["pid"]), f"web.7/{os.getpid()}"]
    assert holders(world) == []


@pytest.mark.parametrize("route", ["direct"], indirect=True)
def test_a_run_in_another_process_is_shown(database: Database, world: World) -> None:
    with start_run(database, "idle", DYNO="worker.3", JOB_SECONDS="300") as process:
        try:
            wait_until(lambda: world.marks, 60)
            [record] = holders(world)
        finally:
            process.kill()
    # This app registers no job "idle": the key is shown, and who holds it.
    assert record["job"] is None
    assert record["key"] == database.value("SELECT hashtextextended('idle', 0)")
    assert record["instance"] == f"worker.3/{process.pid}"


def test_a_foreign_holder_of_a_jobs_key_is_told_apart(world: World, database: Database) -> None:
    with database.connect(application_name="billing") as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))")
        [record] = holders(world)
        line = lines(world)[1]
        assert record["pid"] == other.info.backend_pid
    assert record["job"] == "digest"
    assert record["ours"] is False
    assert record["instance"].startswith("billing")
    assert record["since"] is not None
    assert "not one of our runs" in line


@pytest.mark.parametrize("key", [-5, 0, 7, -(2**63), 2**63 - 1])
def test_a_session_level_lock_is_shown_with_its_signed_key(
    world: World, database: Database, key: int
) -> None:
    with database.connect(application_name="migrator") as other:
        other.execute("SELECT pg_advisory_lock(%s::bigint)", [key])
        [record] = holders(world)
        line = lines(world)[1]
    assert record["key"] == key
    assert record["job"] is None
    assert record["since"] is None
    assert line.startswith(f"key {key} ")
    assert "unknown" in line


def test_locks_of_two_numbers_and_of_other_databases_are_not_shown(
    world: World, database: Database
) -> None:
    elsewhere = database.server.conninfo("postgres")
    with database.connect() as here, psycopg.connect(elsewhere) as there:
        here.execute("SELECT pg_advisory_lock(1, 2)")
        there.execute("SELECT pg_advisory_xact_lock(3)")
        assert holders(world) == []


def test_a_role_without_privileges_sees_our_runs_and_is_told_what_it_lacks(
    make_world: Callable[..., World],
    database: Database,
    gate: Gate,
    with_digest: Callable[[World], World],
) -> None:
    ours = with_digest(make_world(CRONLOCK_INSTANCE="web.7"))
    with (
        stranger_to(database) as url,
        bare_world(database, url=url) as looking_on,
        running(ours, "digest", gate),
        database.connect(application_name="billing") as other,
        other.transaction(),
    ):
        other.execute("SELECT pg_advisory_xact_lock(3)")
        with_digest(looking_on)
        records = {record["job"]: record for record in holders(looking_on)}
        shown = lines(looking_on)
    assert records["digest"]["instance"] == f"web.7/{os.getpid()}"
    assert records["digest"]["since"] is not None
    assert records["digest"]["state"] is None
    assert records[None]["since"] is None
    assert sum("grant pg_read_all_stats" in line for line in shown) == 2
