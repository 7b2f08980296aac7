"""What has ended long ago, and is removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from procrastinate.connector import BaseAsyncConnector
from psycopg import sql
from sqlalchemy import Table

logger = logging.getLogger("flask_cronlock")

BATCH = 1000

ROWS = """
WITH old AS (
    DELETE FROM procrastinate_jobs WHERE id IN (
        SELECT job.id FROM procrastinate_jobs job
        WHERE job.status IN ('succeeded', 'failed', 'cancelled', 'aborted')
          AND job.queue_name = ANY(%(queues)s::varchar[])
          AND NOT EXISTS (SELECT FROM procrastinate_events event
                          WHERE event.job_id = job.id AND event.at > now() - %(history)s)
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    ) RETURNING id
)
SELECT count(*) AS removed FROM old
"""
# What failed or is in doubt stays: it is an operator's.
ITEMS = """
WITH old AS (
    DELETE FROM {items} WHERE key IN (
        SELECT key FROM {items}
        WHERE namespace = %(namespace)s AND state = 'done'
          AND finished_at < now() - %(history)s
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    ) RETURNING key
)
SELECT count(*) AS removed FROM old
"""
REQUESTS = """
WITH old AS (
    DELETE FROM {requests} WHERE id IN (
        SELECT id FROM {requests}
        WHERE namespace = %(namespace)s AND state = 'ended'
          AND ended_at < now() - %(history)s
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    ) RETURNING id
)
SELECT count(*) AS removed FROM old
"""


class Sweep:
    """Removes what ended longer ago than *history*: rows of *queues*, *items*, and *requests*."""

    def __init__(
        self,
        connector: BaseAsyncConnector,
        queues: Sequence[str],
        items: Table,
        requests: Table,
        namespace: str,
        history: timedelta,
    ) -> None:
        self._connector = connector
        self._about = {"queues": list(queues), "namespace": namespace, "history": history}
        self._items = sql.SQL(ITEMS).format(items=_name(items))
        self._requests = sql.SQL(REQUESTS).format(requests=_name(requests))

    async def sweep(self) -> None:
        """Remove what is old, in short transactions, and say how much that was."""
        swept = [await self._remove(query) for query in (ROWS, self._items, self._requests)]
        if any(swept):
            words = "The worker removed what had ended: %d rows, %d items done, %d runs asked for."
            logger.info(words, *swept, extra={"action": "queue_swept"})

    async def _remove(self, query: Any) -> int:
        removed = batch = BATCH
        total = 0
        while removed == batch:
            values = {**self._about, "batch": batch}
            row = await self._connector.execute_query_one_async(query, **values)
            removed = int(row["removed"])
            total += removed
        return total


def _name(table: Table) -> sql.Identifier:
    return sql.Identifier(*filter(None, (table.schema, table.name)))
