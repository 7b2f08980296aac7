"""Which rows a worker's keeper puts back, and when: those that no live worker has, no others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from flask_cronlock.queue import heart, keeper
from flask_cronlock.queue.manager import Manager

from ..support.belts import kept, until, with_manager
from ..support.databases import Database
from ..support.worlds import World

ROW = """
INSERT INTO procrastinate_jobs (queue_name, task_name, status, worker_id)
VALUES (%s, 'task', 'doing', %s) RETURNING id
"""
WORKER = """
INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - %s::interval) RETURNING id
"""


@pytest.fixture
def rows(world: World, database: Database) -> Iterator[psycopg.Connection[Any]]:
    with database.connect() as connection:
        yield connection


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a keeper look at once, and often."""
    monkeypatch.setattr(heart, "STEADY_AFTER", 0)
    monkeypatch.setattr(keeper, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(keeper, "NOBODYS_EVERY", 0.1)


def add_worker(rows: Any, silent_for: str = "0") -> int:
    return int(rows.execute(WORKER, [silent_for]).fetchone()[0])


def add_row(rows: Any, worker: int | None, queue: str = "default") -> int:
    """Add a row that is in the hands of *worker*."""
    return int(rows.execute(ROW, [queue, worker]).fetchone()[0])


def is_back(rows: Any, row: int) -> bool:
    found = rows.execute("SELECT status FROM procrastinate_jobs WHERE id = %s", [row])
    return bool(found.fetchone()[0] == "todo")


async def looks(rows: Any, times: int = 3) -> None:
    """Wait until a keeper has looked for both kinds of lost rows, *times* after each other."""
    for _ in range(times):
        for owner in (add_worker(rows, "1h"), None):
            row = add_row(rows, owner)
            await until(lambda row=row: is_back(rows, row))


def test_rows_of_workers_that_show_no_sign_of_life_are_put_back_and_no_others(
    rows: Any, database: Database, world: World
) -> None:
    async def act(manager: Manager) -> None:
        await manager.register_worker()
        left = [
            add_row(rows, add_worker(rows, "30s")),
            add_row(rows, add_worker(rows, "1h"), "mail"),
            add_row(rows, None, "mail"),
        ]
        async with kept(manager, world, "default"):
            await looks(rows)
        assert not any(is_back(rows, row) for row in left)

    with_manager(database, act)


def test_what_this_worker_has_in_hand_or_on_its_way_is_left(
    rows: Any, database: Database, world: World
) -> None:
    """Also where it has shown no sign of life itself, having slept."""

    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        rows.execute("INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('own', 'x')")
        job = await manager.fetch_job(["own"], worker)
        assert job is not None
        async with kept(manager, world, "default", "own"):
            await looks(rows)
            manager.fetching = True
            on_its_way = add_row(rows, worker)
            rows.execute(
                "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1h'"
                " WHERE id = %s",
                [worker],
            )
            await looks(rows)
        assert job.id is not None
        assert not is_back(rows, job.id)
        assert not is_back(rows, on_its_way)

    with_manager(database, act)


@pytest.mark.parametrize("interval", ["LOOK_EVERY", "NOBODYS_EVERY"])
def test_what_one_look_alone_found_is_not_put_back(
    rows: Any,
    database: Database,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    interval: str,
) -> None:
    """A row may have been on its way to this worker, and nobody's that of one about to beat."""
    monkeypatch.setattr(keeper, interval, 2)

    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        row = add_row(rows, worker if interval == "LOOK_EVERY" else None)
        begun = time.monotonic()
        async with kept(manager, world, "default"):
            await until(lambda: is_back(rows, row))
        assert time.monotonic() - begun >= 2

    with_manager(database, act)


@pytest.mark.parametrize("listed", [True, False])
def test_nothing_is_put_back_before_all_live_workers_may_have_shown_a_sign_of_life(
    rows: Any, database: Database, world: World, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr(heart, "STEADY_AFTER", 2)

    async def act(manager: Manager) -> None:
        row = add_row(rows, add_worker(rows, "1h") if listed else None)
        begun = time.monotonic()
        await manager.register_worker()
        async with kept(manager, world, "default"):
            await until(lambda: is_back(rows, row))
        assert time.monotonic() - begun >= 2

    with_manager(database, act)


def test_after_an_outage_a_worker_is_no_judge_of_others(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heart, "STEADY_AFTER", 3.5)

    async def act(manager: Manager) -> None:
        await manager.register_worker()
        await asyncio.sleep(4)
        assert manager.heart.steady
        monkeypatch.setattr(heart, "BEAT_EVERY", 1)
        assert not manager.heart.steady
        await manager.beat()
        assert not manager.heart.steady

    with_manager(database, act)


def test_a_worker_that_was_taken_off_the_list_is_on_it_again_with_what_it_has(
    rows: Any, database: Database
) -> None:
    async def act(manager: Manager) -> None:
        worker, other = await manager.register_worker(), add_worker(rows)
        mine, others, put_back = (add_row(rows, owner) for owner in (worker, worker, worker))
        manager.heart.in_hand |= {mine, others, put_back}
        rows.execute("DELETE FROM procrastinate_workers WHERE id = %s", [worker])
        rows.execute("UPDATE procrastinate_jobs SET worker_id = %s WHERE id = %s", [other, others])
        rows.execute("UPDATE procrastinate_jobs SET status = 'todo' WHERE id = %s", [put_back])

        await manager.beat()

        found = rows.execute("SELECT worker_id FROM procrastinate_jobs ORDER BY id").fetchall()
        assert found == [(worker,), (other,), (None,)]

    with_manager(database, act)


def test_a_worker_that_has_ended_stays_off_the_list(rows: Any, database: Database) -> None:
    async def act(manager: Manager) -> None:
        await manager.unregister_worker(await manager.register_worker())
        await manager.beat()

    with_manager(database, act)
    assert rows.execute("SELECT id FROM procrastinate_workers").fetchall() == []
