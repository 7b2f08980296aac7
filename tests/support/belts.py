"""A worker in the tests' own process, or its manager of jobs alone, and a database that is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import procrastinate
import psycopg
from psycopg_pool import AsyncConnectionPool

from flask_cronlock.queue.connecting import find_way
from flask_cronlock.queue.keeper import Keeper
from flask_cronlock.queue.manager import Manager
from flask_cronlock.queue.outage import Outage
from flask_cronlock.queue.sweeping import Sweep
from flask_cronlock.queue.task import DEFAULT_QUEUE
from flask_cronlock.queue.tasks import queue_name
from flask_cronlock.queue.worker import QueueWorker

from .clocks import state_of
from .databases import Database
from .processes import wait_until
from .worlds import World

BELT = "cronlock-belt"
HISTORY = timedelta(days=30)


@dataclass(frozen=True)
class Hired:
    """A worker at work, and what becomes of its call."""

    worker: QueueWorker
    ended: Future[None]

    def end(self, seconds: float = 30) -> None:
        """Tell it to stop, and wait for that."""
        self.worker.stop()
        self.ended.result(seconds)


@contextmanager
def hired(world: World, count: int = 2, grace: timedelta = timedelta(hours=1)) -> Iterator[Hired]:
    """Run a worker of *world* for as long as the block takes, and until its belt is at rest."""
    with world.app.app_context():
        way = find_way(state_of(world))
    state = state_of(world)
    queues = [queue_name(state.config.namespace, DEFAULT_QUEUE)]
    worker = QueueWorker(world.app, state, way, queues, count, grace)
    made = Hired(worker, Future())

    def run() -> None:
        try:
            made.ended.set_result(worker.run())
        except BaseException as error:
            made.ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield made
    finally:
        worker.stop()
        wait_until(lambda: BELT not in [thread.name for thread in threading.enumerate()])


@asynccontextmanager
async def managed(database: Database) -> AsyncIterator[Manager]:
    """Yield a manager of jobs whose pool soon gives up."""

    async def configure(connection: Any) -> None:
        await connection.set_autocommit(True)

    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        database.conninfo,
        min_size=1,
        max_size=3,
        open=False,
        configure=configure,
        check=AsyncConnectionPool.check_connection,
        timeout=0.5,
        reconnect_timeout=0.5,
    )
    connector = procrastinate.PsycopgConnector()
    async with pool:
        await connector.open_async(pool)
        yield Manager(connector, Outage("Lost", "Again", ()), Outage("Deaf", "It hears", ()))


@asynccontextmanager
async def kept(manager: Manager, world: World, *queues: str) -> AsyncIterator[None]:
    """Have a keeper of *queues* go on beside the block."""
    tables = state_of(world).records.table, state_of(world).requests.table
    sweep = Sweep(manager.connector, queues, *tables, "", HISTORY)
    keeping = asyncio.create_task(Keeper(manager, queues, sweep).keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def until(reached: Callable[[], object], seconds: float = 30) -> None:
    """Do as ``wait_until``, while other tasks go on."""
    async with asyncio.timeout(seconds):
        while not reached():
            await asyncio.sleep(0.02)


def with_manager(database: Database, act: Callable[[Manager], Awaitable[None]]) -> None:
    """Call *act* with a manager of jobs, in a loop of their own."""

    async def run() -> None:
        async with managed(database) as manager:
            await act(manager)

    asyncio.run(run())


@contextmanager
def away(database: Database) -> Iterator[None]:
    """Let nobody into *database* for as long as the block takes, and turn out who is there."""
    postgres = database.server.conninfo("postgres")
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {database.name} WITH ALLOW_CONNECTIONS false")
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [database.name],
        )
        try:
            yield
        finally:
            admin.execute(f"ALTER DATABASE {database.name} WITH ALLOW_CONNECTIONS true")
