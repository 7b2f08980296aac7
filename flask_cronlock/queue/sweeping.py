"""What has ended long ago, and is removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, LiteralString

from procrastinate.connector import BaseAsyncConnector
from psycopg import sql
from sqlalchemy import Table

logger = logging.getLogger("flask_cronlock")

BATCH = 1000

REMOVE = """
WITH old AS (
    DELETE FROM {table} WHERE {key} IN (
        SELECT {key} FROM {table} ended WHERE {long_ago}
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    ) RETURNING 1
)
SELECT count(*) AS removed FROM old
"""
ROWS = """status IN ('succeeded', 'failed', 'cancelled', 'aborted')
          AND queue_name = ANY(%(queues)s::varchar[])
          AND NOT EXISTS (SELECT FROM procrastinate_events event
                          WHERE event.job_id = ended.id AND event.at > now() - %(history)s)"""
# What failed or is in doubt stays: it is an operator's.
ITEMS = """namespace = %(namespace)s AND state = 'done'
          AND finished_at < now() - %(history)s"""
REQUESTS = """namespace = %(namespace)s AND state = 'ended'
          AND ended_at < now() - %(history)s"""


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
        self._queries = (
            _removing(sql.Identifier("procrastinate_jobs"), "id", ROWS),
            _removing(_name(items), "key", ITEMS),
            _removing(_name(requests), "id", REQUESTS),
        )

    async def sweep(self) -> None:
        """Remove what is old, in short transactions, and say how much that was."""
        swept = [await self._remove(query) for query in self._queries]
        if any(swept):
            words = "%d queue rows, %d items done, %d runs asked for"
            told = f"The worker removed what had ended: {words}."
            logger.info(told, *swept, extra={"action": "queue_swept"})

    async def _remove(self, query: Any) -> int:
        removed = batch = BATCH
        total = 0
        while removed == batch:
            values = {**self._about, "batch": batch}
            row = await self._connector.execute_query_one_async(query, **values)
            removed = int(row["removed"])
            total += removed
        return total


def _removing(table: sql.Identifier, key: str, long_ago: LiteralString) -> sql.Composed:
    """Return the statement that removes a batch of the rows that ended long ago."""
    named = {"table": table, "key": sql.Identifier(key), "long_ago": sql.SQL(long_ago)}
    return sql.SQL(REMOVE).format(**named)


def _name(table: Table) -> sql.Identifier:
    return sql.Identifier(*filter(None, (table.schema, table.name)))
