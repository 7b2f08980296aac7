"""A worker's sign of life, and what it has in hand: others take over from one that shows none."""

from __future__ import annotations

import time
from typing import Any

from procrastinate.connector import BaseAsyncConnector

BEAT_EVERY = 10.0
STALLED_AFTER = 60.0
"""Seconds without a sign of life after which a worker counts as gone."""
STEADY_AFTER = 30.0
"""Seconds in which all live workers have shown a sign of life once the database is back."""

# A worker that another one took for gone is on the list again, with what is still in its hands.
BEAT = """
WITH alive AS (
    INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)
    ON CONFLICT (id) DO UPDATE SET last_heartbeat = now() RETURNING id
), kept AS (
    UPDATE procrastinate_jobs job SET worker_id = alive.id FROM alive
    WHERE job.id = ANY(%(in_hand)s::bigint[]) AND job.status = 'doing' AND job.worker_id IS NULL
)
SELECT clock_timestamp() AS now FROM alive
"""


class Heart:
    """The sign of life of this process's worker, which goes on for as long as it has work in hand.

    Procrastinate's own stops when the worker is told to, and for good after one error.
    """

    def __init__(self, connector: BaseAsyncConnector) -> None:
        self._connector = connector
        self.worker_id: int | None = None
        self.in_hand: set[int] = set()
        """The rows, from being fetched until their end is written."""
        self._beaten_at = self._steady_since = -float("inf")
        self.clock_ahead = 0.0
        """Seconds by which the database's clock is ahead of this host's."""

    async def beat(self) -> None:
        """Show a sign of life."""
        begun = time.monotonic()
        values: dict[str, Any] = {"worker": self.worker_id, "in_hand": list(self.in_hand)}
        row = await self._connector.execute_query_one_async(BEAT, **values)
        self.clock_ahead = row["now"].timestamp() - time.time()
        if begun - self._beaten_at > 3 * BEAT_EVERY:
            self._steady_since = time.monotonic()
        self._beaten_at = begun

    @property
    def late(self) -> bool:
        """Tell whether others may soon take this worker for gone, and so what it takes up now."""
        return time.monotonic() - self._beaten_at > 2 * BEAT_EVERY

    @property
    def steady(self) -> bool:
        """Tell whether the database has answered for so long that who shows no sign is gone.

        After an outage nobody has shown one, and the first worker to be back is no judge of that.
        """
        return not self.late and time.monotonic() - self._steady_since >= STEADY_AFTER
