"""The rows' way from the queue to the threads that work them off, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import procrastinate
from flask import Flask
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import DeleteJobCondition
from procrastinate.tasks import Task
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from ..state import AppState
from ..workers import Workers
from .connecting import Way
from .errand import run_request
from .keeper import Keeper
from .manager import Manager
from .outage import Outage
from .retries import Retries
from .sweeping import Sweep
from .task import RUN_TASK
from .work import Delivered, UnknownHere, work_off

FORGET_AFTER = 3600.0
"""Seconds after which a worker that shows no sign of life is off Procrastinate's list."""
NEVER = 86_400.0
NUDGE = 0.5
NOT_REGISTERED = (
    "no module that is imported here registers it: import it where the app is made, or wait for "
    "workers of the release that has it"
)


class Belt:
    """Procrastinate's worker on *queues*, and the threads that it hands rows to, at most *count*.

    :param until_empty: end when nothing is due.
    """

    def __init__(
        self,
        app: Flask,
        state: AppState,
        way: Way,
        queues: Sequence[str],
        count: int,
        until_empty: bool,
    ) -> None:
        self._app, self._state, self._way = app, state, way
        self._queues, self._count, self._until_empty = list(queues), count, until_empty
        self._threads = Workers(count)
        self._pool = _make_pool(way)
        self._connector = procrastinate.PsycopgConnector()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        secrets = (*state.config.secrets, *way.secrets)
        self._manager = Manager(
            self._connector,
            Outage(
                "The database does not answer the worker", "It answers the worker again", secrets
            ),
            Outage("The worker cannot listen, and looks now and then", "It listens again", secrets),
        )
        self._queue = procrastinate.App(connector=self._connector)
        self._queue.job_manager = self._manager
        retry = Retries(self._manager.heart, secrets)
        call: Any = Task(
            self._call, blueprint=self._queue, name="row", queue="", pass_context=True, retry=retry
        )
        self._queue.tasks = OneTask(call)

    @property
    def in_hand(self) -> int:
        """How many rows are being worked off."""
        return len(self._manager.heart.in_hand)

    def stop(self) -> None:
        """Take no more rows, and let :meth:`run` return when those in hand have ended."""
        self._stopping = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._manager.stop_asked.set)

    async def run(self) -> None:
        """Take rows until :meth:`stop`, which any thread may call."""
        self._loop = asyncio.get_running_loop()
        if self._stopping:
            return
        async with self._pool:
            await self._queue.open_async(self._pool)
            config = self._state.config
            about = config.namespace, config.queue_history
            tables = self._state.records.table, self._state.requests.table
            sweep = Sweep(self._connector, self._queues, *tables, *about)
            keeping = asyncio.create_task(Keeper(self._manager, self._queues, sweep).keep())
            stopping = asyncio.create_task(self._stop_when_asked())
            try:
                await self._take()
            finally:
                for beside in (keeping, stopping):
                    beside.cancel()
                await asyncio.gather(keeping, stopping, return_exceptions=True)

    async def _take(self) -> None:
        while not self._stopping:
            taken = self._manager.taken
            self._worker = self._make_worker()
            try:
                await self._worker.run()
            except ConnectorException:
                if not self._stopping:
                    raise
            if self._until_empty and self._manager.taken == taken:
                return
            if not (self._until_empty or self._stopping):
                await asyncio.sleep(NUDGE)

    def _make_worker(self) -> Any:
        return Worker(
            self._queue,
            self._queues,
            concurrency=self._count,
            wait=not self._until_empty,
            fetch_job_polling_interval=self._way.poll_every,
            listen_notify=self._way.listens,
            delete_jobs=DeleteJobCondition.SUCCESSFUL,
            install_signal_handlers=False,
            update_heartbeat_interval=NEVER,
            stalled_worker_timeout=FORGET_AFTER,
        )

    async def _stop_when_asked(self) -> None:
        """Tell Procrastinate's worker, more than once: one that is just starting forgets it."""
        await self._manager.stop_asked.wait()
        while True:
            self._worker.stop()
            await asyncio.sleep(NUDGE)

    async def _call(self, context: Any, /, **arguments: Any) -> None:
        """Work off one row on a thread of its own, to its end, whatever is cancelled here."""
        work = self._work_of(context, arguments)
        error = await self._on_a_thread(work)
        if error is not None:
            raise error if isinstance(error, Exception) else RuntimeError(repr(error))

    def _work_of(self, context: Any, arguments: dict[str, Any]) -> Callable[[], object]:
        """Return what is to be called for a row: for a run, or for the items of a task."""
        job, tasks = context.job, self._state.tasks
        delivered = Delivered(job.id, job.attempts, arguments)
        if job.task_name == RUN_TASK:
            return partial(run_request, self._app, self._state, delivered)
        if job.task_name not in tasks:
            raise UnknownHere(NOT_REGISTERED)

        def stopping() -> bool:
            return self._stopping or bool(context.should_abort())

        task = tasks.get(job.task_name)
        return partial(work_off, self._app, self._state, task, delivered, stopping)

    async def _on_a_thread(self, work: Callable[[], object]) -> BaseException | None:
        """Return what *work* raises."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def call() -> None:
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:
                error = raised
            loop.call_soon_threadsafe(ended.set_result, error)

        self._threads.submit(call)
        while not ended.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(ended)
        return ended.result()


class OneTask(dict[str, Any]):
    """Procrastinate's tasks: whatever a row names, it is one call here."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call

    def get(self, name: str, default: Any = None) -> Any:
        return self._call


def _make_pool(way: Way) -> AsyncConnectionPool[Any]:
    """Return a pool for single statements; where none can be had it soon says so."""

    async def configure(connection: Any) -> None:
        await connection.set_autocommit(True)

    return AsyncConnectionPool(
        kwargs={**way.parameters, "prepare_threshold": None},
        min_size=1,
        max_size=3,
        open=False,
        configure=configure,
        check=AsyncConnectionPool.check_connection,
        timeout=5,
        reconnect_timeout=5,
    )
