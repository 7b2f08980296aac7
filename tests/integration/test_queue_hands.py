"""What a worker has in hand is its own until its end is written, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status

from flask_cronlock.queue import heart, outage
from flask_cronlock.queue.manager import Manager

from ..support.belts import away, until, with_manager
from ..support.databases import Database
from ..support.worlds import World

QUEUES = ["default"]
End = Callable[[Manager, Job], Awaitable[None]]


@pytest.fixture
def rows(world: World, database: Database) -> Iterator[psycopg.Connection[Any]]:
    with database.connect() as connection:
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('default', 'task')"
        )
        yield connection


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PAUSES", (0.1,))


async def taken(manager: Manager) -> Job:
    """Put *manager*'s worker on the list, and let it take the row."""
    job = await manager.fetch_job(QUEUES, await manager.register_worker())
    assert job is not None
    return job


def left(rows: Any) -> list[tuple[str, int | None]]:
    """Return the status of each row, and the worker that has it."""
    found = rows.execute("SELECT status::text, worker_id FROM procrastinate_jobs").fetchall()
    return list(found)


async def finish(manager: Manager, job: Job) -> None:
    await manager.finish_job(job, Status.SUCCEEDED, True)


async def give_back(manager: Manager, job: Job) -> None:
    await manager.retry_job(job)


@pytest.mark.parametrize(("end", "after"), [(finish, []), (give_back, ["todo"])])
def test_what_is_in_hand_is_ended(
    rows: Any, database: Database, end: End, after: list[str]
) -> None:
    async def act(manager: Manager) -> None:
        job = await taken(manager)
        assert (manager.taken, manager.heart.in_hand) == (1, {job.id})
        await end(manager, job)
        assert manager.heart.in_hand == set()

    with_manager(database, act)
    assert [status for status, _ in left(rows)] == after


@pytest.mark.parametrize("end", [finish, give_back])
def test_a_row_that_another_worker_has_by_now_is_not_ended(
    rows: Any, database: Database, end: End
) -> None:
    async def act(manager: Manager) -> None:
        job = await taken(manager)
        other = rows.execute(
            "WITH other AS (INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id)"
            " UPDATE procrastinate_jobs SET worker_id = other.id FROM other RETURNING other.id"
        ).fetchone()[0]
        await end(manager, job)
        assert manager.heart.in_hand == set()
        assert left(rows) == [("doing", other)]

    with_manager(database, act)


@pytest.mark.parametrize("end", [finish, give_back])
def test_a_row_that_was_put_back_is_not_ended(rows: Any, database: Database, end: End) -> None:
    """Not even as long as no other worker has taken it."""

    async def act(manager: Manager) -> None:
        job = await taken(manager)
        rows.execute(
            "UPDATE procrastinate_jobs SET status = 'todo', scheduled_at = now() + interval '1h'"
        )
        await end(manager, job)

    with_manager(database, act)
    assert [status for status, _ in left(rows)] == ["todo"]


def test_once_it_is_to_stop_it_takes_no_row(rows: Any, database: Database) -> None:
    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        manager.stop_asked.set()
        assert await manager.fetch_job(QUEUES, worker) is None

    with_manager(database, act)
    assert left(rows) == [("todo", None)]


def test_it_is_known_that_a_row_may_be_on_its_way(rows: Any, database: Database) -> None:
    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        assert not manager.fetching
        with rows.transaction():
            rows.execute("LOCK TABLE procrastinate_jobs")
            fetch = asyncio.create_task(manager.fetch_job(QUEUES, worker))
            await asyncio.sleep(0.5)
            assert manager.fetching
        await fetch
        assert not manager.fetching

    with_manager(database, act)


def test_a_worker_that_showed_no_sign_of_life_shows_one_before_it_takes_a_row(
    rows: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        rows.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1h'")
        monkeypatch.setattr(heart, "BEAT_EVERY", 0)
        assert await manager.fetch_job(QUEUES, worker)

    with_manager(database, act)
    age = rows.execute("SELECT now() - last_heartbeat FROM procrastinate_workers").fetchone()[0]
    assert age.total_seconds() < 1800


@pytest.mark.parametrize("stops", [False, True])
def test_an_end_is_written_once_the_database_is_back_even_while_the_worker_stops(
    rows: Any, database: Database, caplog: pytest.LogCaptureFixture, stops: bool
) -> None:
    async def act(manager: Manager) -> None:
        job = await taken(manager)
        with away(database):
            if stops:
                manager.stop_asked.set()
            end = asyncio.create_task(finish(manager, job))
            await until(lambda: "Lost" in caplog.text)
            await asyncio.sleep(2)
        await asyncio.wait_for(end, 30)
        assert caplog.text.count("Lost") == 1

    with_manager(database, act)
    assert database.query("SELECT FROM procrastinate_jobs") == []


def test_a_worker_without_a_row_waits_for_its_database(
    rows: Any, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(manager: Manager) -> None:
        worker = await manager.register_worker()
        with away(database):
            fetch = asyncio.create_task(manager.fetch_job(QUEUES, worker))
            await until(lambda: "Lost" in caplog.text)
        assert await asyncio.wait_for(fetch, 30)

    with_manager(database, act)


def test_a_worker_that_is_to_stop_before_it_began_does_not_wait_for_its_database(
    world: World, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(manager: Manager) -> None:
        with away(database):
            begins = asyncio.create_task(manager.register_worker())
            await until(lambda: "Lost" in caplog.text)
            manager.stop_asked.set()
            with pytest.raises(ConnectorException):
                await asyncio.wait_for(begins, 15)

    with_manager(database, act)


def test_what_is_to_be_aborted_is_not_asked_of_a_database_that_is_away(
    world: World, database: Database
) -> None:
    async def act(manager: Manager) -> None:
        with away(database):
            assert await manager.list_jobs_to_abort_async() == []

    with_manager(database, act)


def test_a_worker_listens_again_after_an_outage(
    world: World, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    heard = asyncio.Event()

    async def note(*, channel: str, notification: Any) -> None:
        heard.set()

    def told() -> bool:
        database.query(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('default', 'task')"
        )
        return heard.is_set()

    async def act(manager: Manager) -> None:
        listens = manager.listen_for_jobs(on_notification=note, queues=QUEUES)
        listening = asyncio.create_task(listens)
        await until(told)
        with away(database):
            await until(lambda: listening.done() or "Deaf" in caplog.text)
        heard.clear()
        await until(told)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    with_manager(database, act)
