"""What goes on beside a worker's work: its sign of life, what others left behind, and sweeping."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from procrastinate.exceptions import ConnectorException

from . import heart
from .manager import Manager
from .sweeping import Sweep

logger = logging.getLogger("flask_cronlock")

LOOK_EVERY = 15.0
"""Seconds; longer than a beat, so that what was seen at two looks in a row is so."""
NOBODYS_EVERY = 60.0
"""Seconds; no index helps this look."""
SWEEP_EVERY = 3600.0
TRY_AGAIN_AFTER = 2.0

STALLED = """
SELECT job.id, job.worker_id AS worker FROM procrastinate_jobs job
JOIN procrastinate_workers gone ON gone.id = job.worker_id
WHERE job.status = 'doing' AND job.queue_name = ANY(%(queues)s::varchar[])
  AND gone.id <> %(worker)s
  AND gone.last_heartbeat < now() - make_interval(secs => %(stalled_after)s)
"""
DROPPED = """
SELECT id, worker_id AS worker FROM procrastinate_jobs
WHERE status = 'doing' AND worker_id = %(worker)s AND id <> ALL(%(in_hand)s::bigint[])
"""
NOBODYS = """
SELECT id, 0 AS worker FROM procrastinate_jobs
WHERE status = 'doing' AND worker_id IS NULL AND queue_name = ANY(%(queues)s::varchar[])
  AND id <> ALL(%(in_hand)s::bigint[])
"""
# Another worker may have put it back since, and a third one have it in hand. Procrastinate lets a
# row fail, instead, that somebody asked to abort.
PUT_BACK = """
WITH lost AS MATERIALIZED (
    SELECT job.id, job.task_name, job.abort_requested FROM procrastinate_jobs job
    JOIN unnest(%(rows)s::bigint[], %(workers)s::bigint[]) AS seen (id, worker)
      ON job.id = seen.id AND coalesce(job.worker_id, 0) = seen.worker
    WHERE job.status = 'doing' FOR UPDATE OF job SKIP LOCKED
)
SELECT id, task_name, abort_requested AS aborted,
       procrastinate_retry_job_v2(id, NULL, NULL, NULL, NULL) FROM lost
"""

Found = frozenset[tuple[int, int]]
"""Rows, each with the worker that has it; 0 for none."""


class Keeper:
    """The sign of life of a worker, and looks for rows of *queues* that no live worker has."""

    def __init__(self, manager: Manager, queues: Sequence[str], sweep: Sweep) -> None:
        self._manager, self._heart, self._queues = manager, manager.heart, list(queues)
        self._sweep = sweep
        self._dropped: Found = frozenset()
        self._nobodys: Found = frozenset()

    async def keep(self) -> None:
        """Go on until cancelled."""
        await asyncio.gather(
            self._every(heart.BEAT_EVERY, self._manager.beat),
            self._every(LOOK_EVERY, self._look),
            self._every(NOBODYS_EVERY, self._look_for_nobodys),
            self._every(SWEEP_EVERY, self._sweep.sweep),
        )

    async def _every(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except ConnectorException:
                await asyncio.sleep(min(seconds, TRY_AGAIN_AFTER))
            except Exception:
                logger.exception("The worker's keeper goes on after an error.")
                await asyncio.sleep(seconds)
            else:
                await asyncio.sleep(seconds)

    async def _look(self) -> None:
        """Put back what workers had that are gone, and what this one has without knowing it.

        The answer to its fetching a row was lost then; two looks tell that from one on its way.
        """
        if not self._heart.steady:
            return
        stalled = await self._find(STALLED)
        await self._put_back(stalled, "its worker has shown no sign of life")
        before, self._dropped = self._dropped, frozenset()
        if not self._manager.fetching:
            self._dropped = await self._find(DROPPED)
            await self._put_back(self._dropped & before, "it had not reached this worker")

    async def _look_for_nobodys(self) -> None:
        """Put back what workers had that are off the list; one that lives is on it again soon."""
        if not self._heart.steady:
            return
        before, self._nobodys = self._nobodys, await self._find(NOBODYS)
        await self._put_back(self._nobodys & before, "its worker is gone")

    async def _find(self, query: Any) -> Found:
        values: dict[str, Any] = {
            "queues": self._queues,
            "worker": self._heart.worker_id,
            "in_hand": list(self._heart.in_hand),
            "stalled_after": heart.STALLED_AFTER,
        }
        rows = await self._manager.connector.execute_query_all_async(query, **values)
        return frozenset((row["id"], row["worker"]) for row in rows)

    async def _put_back(self, found: Iterable[tuple[int, int]], why: str) -> None:
        lost = [(row, worker) for row, worker in found if row not in self._heart.in_hand]
        if not lost:
            return
        rows, workers = [row for row, _ in lost], [worker for _, worker in lost]
        ask = self._manager.connector.execute_query_all_async
        for row in await ask(PUT_BACK, rows=rows, workers=workers):
            _tell(row["id"], row["task_name"], row["aborted"], why)


def _tell(row: int, task: str, aborted: bool, why: str) -> None:
    fate = "has failed, as somebody asked to abort it" if aborted else "was put back"
    about = {"action": "row_aborted" if aborted else "row_rescued", "task": task, "row": row}
    logger.warning("Task %s, queue row %s %s: %s.", task, row, fate, why, extra=about)
