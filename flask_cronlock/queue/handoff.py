"""Deferring: queue rows written on a session's own connection, in its own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from ..exceptions import DeferError
from ..run import Run
from ..state import AppState
from ..texts import shown
from .arguments import checked
from .extra import require_queue
from .fanout import Source, fan_out
from .origin import Origin
from .surety import sure_connection
from .tasks import Tasks, queue_name

CHUNK = 1_000
"""Items a statement, so that memory does not grow with the number of items."""
MOST_IN_BATCH = 10_000

# The version in the function's name is Procrastinate's promise to keep it.
DEFER = text("""
SELECT procrastinate_defer_jobs_v1(array_agg(CAST(ROW(
           :queue, :task, 0, NULL, NULL,
           jsonb_build_object('items', items, 'origin', CAST(:origin AS jsonb)), NULL)
       AS procrastinate_job_to_defer_v1)))
FROM jsonb_array_elements(CAST(:batches AS jsonb)) AS items
""")


class Handoff:
    """Defers tasks in the transaction of one session.

    What is deferred is seen by nobody before the outermost commit, and gone with a rollback, a
    savepoint's too.
    """

    def __init__(self, tasks: Tasks, session: Session, origin: Origin, engine: Engine) -> None:
        self._tasks, self._session, self._origin, self._engine = tasks, session, origin, engine

    def defer(self, task: object, arguments: Mapping[str, Any]) -> None:
        """Defer one call."""
        self.defer_many(task, [arguments], 1)

    def defer_many(self, task: object, items: Iterable[Mapping[str, Any]], batch: int) -> int:
        """Defer a call for each of *items*, *batch* of them a queue row; return how many."""
        about = self._about(task, batch)
        known = self._tasks.get(task)
        arguments = (checked(known, _checked_item(item)) for item in items)
        count = 0
        while chunk := list(islice(arguments, max(batch, CHUNK - CHUNK % batch))):
            batches = [chunk[start : start + batch] for start in range(0, len(chunk), batch)]
            connection = sure_connection(self._session, self._engine)
            connection.execute(DEFER, {**about, "batches": json.dumps(batches)})
            count += len(chunk)
        return count

    def defer_from(self, task: object, source: Source, batch: int) -> int:
        """Defer a call for each row of *source*, in one statement; return how many."""
        about = self._about(task, batch)
        statement = fan_out(self._tasks.get(task), source, batch)
        self._session.flush()
        connection = sure_connection(self._session, self._engine)
        return connection.execute(statement, about).scalar() or 0

    def _about(self, task: object, batch: object) -> dict[str, Any]:
        """Return what all queue rows have in common, once nothing of it is wrong."""
        require_queue()
        known = self._tasks.get(task)
        if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST_IN_BATCH:
            raise DeferError(f"batch={shown(batch)}: give 1 to {MOST_IN_BATCH:,} items a queue row")
        return {
            "queue": queue_name(self._origin.namespace, known.queue),
            "task": known.name,
            "origin": json.dumps(self._origin.as_json()),
        }


def handoff_of(run: Run, state: AppState, session: Session) -> Handoff:
    """Return what *run* defers by."""
    return Handoff(state.tasks, session, Origin.of_run(run), state.db.engine)


def _checked_item(item: object) -> Mapping[str, Any]:
    if not isinstance(item, Mapping) or not all(isinstance(name, str) for name in item):
        raise DeferError(f"{shown(item)}: give a dict of the task's arguments for each item")
    return item
