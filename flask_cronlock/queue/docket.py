"""The items that need somebody's eye, and what somebody says of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, func, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from ..exceptions import DeferError
from ..state import AppState
from ..texts import shown
from ..transaction import GuardedTransaction
from .fanout import QueueRow
from .records import State
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
        row = self.state.records.table.c
        since = func.coalesce(row.finished_at, row.started_at)
        about = select(row.key, row.task, row.state, row.attempts, since.label("since"), row.error)
        # The first condition is the index's own.
        wanted = about.where(row.state != State.DONE, row.state.in_(states), self._is_ours)
        found = self.tx.execute(wanted.order_by(since.desc(), row.key).limit(limit))
        return [Entry(**entry) for entry in found.mappings()]

    def retry(self, key: str) -> None:
        """Defer an item anew that was given up, with the same key and all its attempts.

        :raises DeferError: when there is none, or it is not given up.
        """
        table = self.state.records.table
        again = {"state": State.WAITING, "attempts": 0, "in_doubt": False}
        returned = [table.c.task, table.c.args]
        row = self._change(key, GIVEN_UP, again, returned, "is neither in doubt nor failed")
        queue = queue_name(self.state.config.namespace, self.state.tasks.get(row.task).queue)
        arguments = cast(literal(row.args, Text), JSONB)
        queue_row = func.row(literal(queue), literal(row.task), 0, None, None, arguments, None)
        rows = func.array_agg(cast(queue_row, QueueRow))
        self.tx.execute(select(func.procrastinate_defer_jobs_v1(rows)))

    def settle(self, key: str) -> None:
        """Take it from somebody who knows that an item was done, or that it need not be.

        :raises DeferError: when there is no such item, or it is done.
        """
        open_states = [state for state in State if state is not State.DONE]
        settled = {"state": State.DONE, "in_doubt": False, "args": None}
        self._change(
            key, open_states, settled, [self.state.records.table.c.key], "is done, or none"
        )

    def _change(
        self,
        key: str,
        states: Collection[State],
        values: dict[str, Any],
        returned: Sequence[Any],
        otherwise: str,
    ) -> Any:
        table = self.state.records.table
        this = update(table).where(table.c.key == key, table.c.state.in_(states), self._is_ours)
        row = self.tx.execute(this.values(values).returning(*returned)).one_or_none()
        if row is None:
            raise DeferError(f"{shown(key)} {otherwise}: `flask cron items` lists the keys")
        return row

    @property
    def _is_ours(self) -> ColumnElement[bool]:
        return self.state.records.table.c.namespace == self.state.config.namespace
