"""The items that need somebody's eye, and what somebody says of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, case, cast, func, literal, select, true, update
from sqlalchemy.dialects.postgresql import JSONB

from ..exceptions import ItemError
from ..state import AppState
from ..texts import shown
from ..transaction import GuardedTransaction
from .records import State
from .rows import defer_rows, queue_row, queue_told
from .task import DEFAULT_QUEUE
from .tasks import queue_name

GIVEN_UP = (State.DOUBT, State.FAILED)


@dataclass(frozen=True, slots=True)
class Entry:
    """An item's row, for an operator."""

    key: str
    task: str
    state: str
    attempts: int
    since: datetime
    error: str | None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "since": self.since.isoformat(timespec="seconds")}


@dataclass(frozen=True, slots=True)
class Docket:
    """The items of one app's namespace, in the transaction *tx*."""

    tx: GuardedTransaction
    state: AppState

    def list(self, states: Collection[State], limit: int) -> Sequence[Entry]:
        """Return the newest items in *states*."""
        row = self._rows.c
        since = func.coalesce(row.finished_at, row.started_at)
        about = select(row.key, row.task, row.state, row.attempts, since.label("since"), row.error)
        # The first condition is the index's own.
        wanted = about.where(row.state != State.DONE, row.state.in_(states), self._is_ours)
        found = self.tx.execute(wanted.order_by(since.desc(), row.key).limit(limit))
        return [Entry(**entry) for entry in found.mappings()]

    def retry(self, key: str) -> None:
        """Defer an item anew that was given up, with the same key and all its attempts.

        :raises ItemError: when there is none, or it is not given up.
        """
        this = self._rows.c.key == key
        if not self._retry(this, GIVEN_UP):
            raise ItemError(f"{shown(key)} is neither in doubt nor failed")

    def retry_all(self, states: Collection[State], task: str | None = None) -> int:
        """Do as :meth:`retry` for all in *states*, or those of one *task*; return how many."""
        row = self._rows.c
        these = row.task == self.state.tasks.get(task).name if task else true()
        return self._retry(these, [state for state in states if state in GIVEN_UP])

    def _retry(self, these: ColumnElement[bool], states: Collection[State]) -> int:
        """Defer what is given up, each item in a row of its own, in one statement."""
        row = self._rows.c
        again = {"state": State.WAITING, "attempts": 0, "in_doubt": False}
        given_up = update(self._rows).where(these, row.state.in_(states), self._is_ours)
        items = given_up.values(again).returning(row.task, row.args).cte("cronlock_again")
        arguments = cast(items.c.args, JSONB)
        rows = defer_rows(queue_row(self._queue_of(items.c.task), items.c.task, arguments))
        with queue_told():
            deferred = self.tx.execute(select(func.cardinality(rows)).select_from(items))
        return deferred.scalar() or 0

    def _queue_of(self, task: ColumnElement[str]) -> ColumnElement[str]:
        """Return the queue of each task that there is now; one that is gone has the default one."""
        namespace = self.state.config.namespace
        queues = {known.name: queue_name(namespace, known.queue) for known in self.state.tasks}
        otherwise = queue_name(namespace, DEFAULT_QUEUE)
        return case(queues, value=task, else_=otherwise) if queues else literal(otherwise)

    def settle(self, key: str) -> None:
        """Take it from somebody who knows that an item was done, or that it need not be.

        :raises ItemError: when there is no such item, or it is done.
        """
        open_states = [state for state in State if state is not State.DONE]
        settled = {"state": State.DONE, "in_doubt": False, "args": None}
        row = self._rows.c
        this = update(self._rows).where(row.key == key, row.state.in_(open_states), self._is_ours)
        if not self.tx.execute(this.values(settled)).rowcount:
            raise ItemError(f"{shown(key)} is done, or no item")

    @property
    def _rows(self) -> Table:
        return self.state.records.table

    @property
    def _is_ours(self) -> ColumnElement[bool]:
        return self._rows.c.namespace == self.state.config.namespace
