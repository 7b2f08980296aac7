"""Deferring: queue rows written on a session's own connection, in its own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import CursorResult, Engine, Executable, func, select
from sqlalchemy.orm import Session

from ..exceptions import DeferError
from ..run import Run
from ..state import AppState
from ..texts import shown
from .arguments import checked
from .extra import require_queue
from .fanout import Source, fan_out
from .origin import Origin
from .rows import defer_rows, json_value, queue_row, queue_told, text_value
from .surety import all_or_nothing, sure_connection
from .tasks import Tasks, queue_name

CHUNK = 1_000
"""Items a statement, so that memory does not grow with the number of items."""
MOST_IN_BATCH = 10_000

ITEMS = func.jsonb_array_elements(json_value("batches")).column_valued("items")
ARGS = func.jsonb_build_object("items", ITEMS, "origin", json_value("origin"))
DEFER = select(defer_rows(queue_row(text_value("queue"), text_value("task"), ARGS)))
"""A row for each of ``batches``."""


class Handoff:
    """Defers tasks in the transaction of one session.

    What is deferred is seen by nobody before the outermost commit, and gone with a rollback, a
    savepoint's too.
    """

    def __init__(self, tasks: Tasks, session: Session, origin: Origin, engine: Engine) -> None:
        self._tasks, self._session, self._origin, self._engine = tasks, session, origin, engine

    def defer(self, task: object, arguments: Mapping[str, Any]) -> None:
        """Defer one call."""
        about = self._about(task, 1)
        self._defer([checked(self._tasks.get(task), arguments)], 1, about)

    def defer_many(self, task: object, items: Iterable[Mapping[str, Any]], batch: int) -> int:
        """Defer a call for each of *items*, *batch* of them a queue row; return how many."""
        about = self._about(task, batch)
        known = self._tasks.get(task)
        arguments = (checked(known, _checked_item(item)) for item in items)
        chunks = iter(lambda: list(islice(arguments, max(batch, CHUNK - CHUNK % batch))), [])
        sure_connection(self._session, self._engine)
        with all_or_nothing(self._session):
            return sum(self._defer(chunk, batch, about) for chunk in chunks)

    def _defer(self, chunk: list[Mapping[str, Any]], batch: int, about: Mapping[str, Any]) -> int:
        batches = [chunk[start : start + batch] for start in range(0, len(chunk), batch)]
        self._execute(DEFER, {**about, "batches": json.dumps(batches)})
        return len(chunk)

    def defer_from(self, task: object, source: Source, batch: int) -> int:
        """Defer a call for each row of *source*, in one statement; return how many."""
        about = self._about(task, batch)
        statement = fan_out(self._tasks.get(task), source, batch, about)
        self._session.flush()
        return int(self._execute(statement).scalar() or 0)

    def _execute(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> CursorResult[Any]:
        connection = sure_connection(self._session, self._engine)
        with queue_told():
            return connection.execute(statement, values)

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
    return item if isinstance(item, dict) else dict(item)
