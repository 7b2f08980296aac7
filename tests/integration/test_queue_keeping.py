"""What a worker's keeper puts back and removes, and what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import procrastinate
import psycopg
import pytest

from flask_cronlock.queue.keeper import PUT_BACK
from flask_cronlock.queue.sweeping import Sweep
from flask_cronlock.state import this_state

from ..support.databases import Database
from ..support.processes import wait_until
from ..support.worlds import World

ROW = """
INSERT INTO procrastinate_jobs (queue_name, task_name, status, worker_id)
VALUES (%s, 'task', %s, %s) RETURNING id
"""
WORKER = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
ITEM = """
INSERT INTO cronlock_item
    (key, namespace, task, state, attempts, in_doubt, instance, started_at, finished_at)
VALUES (%s, %s, 'task', %s, 1, false, 'tests', now(), now() - %s::interval)
"""


@pytest.fixture
def rows(world: World, database: Database) -> Iterator[psycopg.Connection[Any]]:
    with database.connect() as connection:
        yield connection


def add_row(rows: Any, queue: str, status: str, age: str = "0", worker: int | None = None) -> int:
    row = rows.execute(ROW, [queue, status, worker]).fetchone()[0]
    event = (
        "INSERT INTO procrastinate_events (job_id, type, at) VALUES (%s, %s, now() - %s::interval)"
    )
    rows.execute(event, [row, "failed" if status == "failed" else "started", age])
    return int(row)


def test_a_row_that_another_worker_has_by_now_is_not_put_back(rows: Any) -> None:
    """Two workers see the row of a dead one; the second to act finds it in a live one's hands."""
    dead, live = (rows.execute(WORKER).fetchone()[0] for _ in range(2))
    row = add_row(rows, "default", "doing", worker=dead)
    seen = {"rows": [row], "workers": [dead]}
    assert len(rows.execute(PUT_BACK, seen).fetchall()) == 1
    rows.execute("SELECT procrastinate_fetch_job_v2(NULL, %s)", [live])

    assert rows.execute(PUT_BACK, seen).fetchall() == []
    found = rows.execute("SELECT status, worker_id FROM procrastinate_jobs").fetchall()
    assert found == [("doing", live)]


def test_a_row_that_is_being_put_back_by_another_worker_is_left_to_it(
    rows: Any, database: Database
) -> None:
    rows.execute("SET statement_timeout = '10s'")
    dead = rows.execute(WORKER).fetchone()[0]
    seen = {"rows": [add_row(rows, "default", "doing", worker=dead)], "workers": [dead]}
    with database.connect() as other, other.transaction():
        assert len(other.execute(PUT_BACK, seen).fetchall()) == 1
        assert rows.execute(PUT_BACK, seen).fetchall() == []
    assert rows.execute("SELECT status, attempts FROM procrastinate_jobs").fetchall() == [
        ("todo", 1)
    ]


def sweep(database: Database, world: World) -> None:
    with world.app.app_context():
        state = this_state()

    async def act(connector: Any) -> None:
        tables, history = (state.records.table, state.requests.table), timedelta(days=30)
        await Sweep(connector, ["shop.default"], *tables, "shop", history).sweep()

    run_with_connector(database, act)


def run_with_connector(database: Database, act: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        connector = procrastinate.PsycopgConnector(conninfo=database.conninfo, min_size=1)
        await connector.open_async()
        try:
            await act(connector)
        finally:
            await connector.close_async()

    asyncio.run(run())


def test_rows_that_failed_long_ago_are_removed_and_no_others(
    rows: Any, database: Database, world: World
) -> None:
    for _ in range(2100):
        add_row(rows, "shop.default", "failed", "31 days")
    kept = [
        add_row(rows, "shop.default", "failed", "29 days"),
        add_row(rows, "shop.default", "todo", "31 days"),
        add_row(rows, "shop.default", "doing", "31 days"),
        add_row(rows, "default", "failed", "31 days"),
    ]
    sweep(database, world)
    left = rows.execute("SELECT id FROM procrastinate_jobs ORDER BY id").fetchall()
    assert [row[0] for row in left] == kept


def test_records_of_items_done_long_ago_are_removed_and_no_others(
    rows: Any, database: Database, world: World
) -> None:
    for number in range(1100):
        rows.execute(ITEM, [f"old-{number}", "shop", "done", "31 days"])
    kept = [
        ("done lately", "shop", "done", "29 days"),
        ("failed", "shop", "failed", "31 days"),
        ("in doubt", "shop", "doubt", "31 days"),
        ("of another app", "", "done", "31 days"),
        ("started", "shop", "started", "31 days"),
    ]
    for about in kept:
        rows.execute(ITEM, about)
    sweep(database, world)
    left = rows.execute("SELECT key FROM cronlock_item ORDER BY key").fetchall()
    assert [row[0] for row in left] == [key for key, *_ in kept]


def test_of_many_items_only_the_old_ones_are_looked_at(
    rows: Any, database: Database, world: World
) -> None:
    insert = ITEM.replace("VALUES (%s", "SELECT number::text").replace("::interval)", "::interval")
    rows.execute(f"{insert} FROM generate_series(1, 20000) number", ["shop", "done", "29 days"])
    rows.execute("ANALYZE cronlock_item")
    sweep(database, world)
    looks = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s"
    wait_until(lambda: database.value(looks, "cronlock_item_finished"))
