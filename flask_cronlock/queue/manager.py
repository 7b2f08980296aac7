"""Procrastinate's manager of jobs, for one worker: it waits for a database that is away, and
ends only what is still in this worker's hands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

from .heart import Heart
from .outage import Outage

T = TypeVar("T")

logger = logging.getLogger("flask_cronlock")

# Not one that was put back meanwhile, which another worker may have in hand.
MINE = """
WITH mine AS MATERIALIZED (
    SELECT id, abort_requested FROM procrastinate_jobs
    WHERE id = %(row)s AND status = 'doing' AND worker_id = %(worker)s FOR UPDATE
)
"""
FINISH = f"""{MINE}
SELECT false AS aborted,
       procrastinate_finish_job_v1(id, %(status)s::procrastinate_job_status, %(forget)s) FROM mine
"""
# Procrastinate lets a row fail, instead, that somebody asked to abort.
RETRY = f"""{MINE}
SELECT abort_requested AS aborted,
       procrastinate_retry_job_v2(id, %(at)s::timestamptz, %(priority)s, %(queue)s, %(lock)s)
FROM mine
"""


class Manager(JobManager):
    """What a worker asks of the database, with patience."""

    def __init__(self, connector: BaseAsyncConnector, outage: Outage, deafness: Outage) -> None:
        super().__init__(connector)
        self.connector: BaseAsyncConnector
        self._outage, self._deafness = outage, deafness
        self.heart = Heart(connector)
        self.stop_asked = asyncio.Event()
        self.taken = 0
        """How many rows were fetched so far."""
        self.fetching = False

    async def register_worker(self) -> int:
        self.heart.worker_id = await self._patiently(super().register_worker)
        await self._patiently(self.heart.beat)
        return self.heart.worker_id

    async def beat(self) -> None:
        """Show a sign of life, where this worker is on the list."""
        if self.heart.worker_id is None:
            return
        try:
            await self.heart.beat()
        except ConnectorException as error:
            self._outage.note(error)
            raise
        self._outage.end()

    async def unregister_worker(self, worker_id: int) -> None:
        self.heart.worker_id = None
        if self._outage.lasts:
            return
        with suppress(ConnectorException):
            await super().unregister_worker(worker_id)

    async def prune_stalled_workers(self, seconds_since_heartbeat: float) -> list[int]:
        ask = super().prune_stalled_workers
        return await self._patiently(lambda: ask(seconds_since_heartbeat))

    async def list_jobs_to_abort_async(self, queue: str | None = None) -> Iterable[int]:
        try:
            return await super().list_jobs_to_abort_async(queue)
        except ConnectorException:
            return []

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Return a row that is in this worker's hands from now on, or ``None``."""
        ask = super().fetch_job

        async def fetch() -> Job | None:
            if self.stop_asked.is_set():
                return None
            if self.heart.late:
                await self.heart.beat()
            job = await ask(queues, worker_id)
            if job is not None and job.id is not None:
                self.taken += 1
                self.heart.in_hand.add(job.id)
            return job

        self.fetching = True
        try:
            return await self._patiently(fetch)
        finally:
            self.fetching = False

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        await self._end(job, FINISH, status=status.value, forget=delete_job)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        about = {"at": retry_at, "priority": priority, "queue": queue, "lock": lock}
        await self._end(job, RETRY, **about)

    async def _end(self, job: Job, query: Any, **values: Any) -> None:
        """Write the end of what is in hand, as soon as the database takes it."""
        assert job.id is not None
        ask = self.connector.execute_query_all_async
        values |= {"row": job.id, "worker": self.heart.worker_id}
        try:
            rows = await self._patiently(lambda: ask(query, **values), to_the_end=True)
        finally:
            self.heart.in_hand.discard(job.id)
        if not rows:
            # Also where an answer was lost, and it had ended.
            _tell(job, "row_taken_over", "was no longer in this worker's hands at its end")
        elif rows[0]["aborted"]:
            _tell(job, "row_aborted", "has failed: somebody asked to abort it")

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Listen, on a new connection whenever one was lost; Procrastinate's own gives up."""

        async def heard(**what: Any) -> None:
            self._deafness.end()
            await on_notification(**what)

        while True:
            try:
                await super().listen_for_jobs(on_notification=heard, queues=queues)
            except ConnectorException as error:
                await asyncio.sleep(self._deafness.note(error))

    async def _patiently(self, ask: Callable[[], Awaitable[T]], to_the_end: bool = False) -> T:
        """Ask until there is an answer; not once the worker is to stop, but for *to_the_end*."""
        while True:
            try:
                answer = await ask()
            except ConnectorException as error:
                pause = self._outage.note(error)
                if self.stop_asked.is_set() and not to_the_end:
                    raise
                await self._pause(pause)
            else:
                self._outage.end()
                return answer

    async def _pause(self, seconds: float) -> None:
        """Sleep; for less where the worker is told to stop meanwhile."""
        if self.stop_asked.is_set():
            await asyncio.sleep(min(seconds, 1))
            return
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.stop_asked.wait(), seconds)


def _tell(job: Job, action: str, words: str) -> None:
    about = {"action": action, "task": job.task_name, "row": job.id}
    logger.warning("Task %s, queue row %s %s.", job.task_name, job.id, words, extra=about)
