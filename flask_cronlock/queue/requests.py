"""The requests for runs on a worker: one row a slot, so that it is on the queue once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    MetaData,
    Row,
    Table,
    Text,
    case,
    cast,
    column,
    func,
    literal,
    select,
    table,
    update,
)
from sqlalchemy.dialects import postgresql

from ..run import Run
from ..statements import STAMP
from ..tables import make_request_table
from ..transaction import GuardedTransaction
from .rows import defer_rows, json_value, queue_row, queue_told, text_value
from .task import JOBS_QUEUE, RUN_TASK
from .tasks import queue_name

QUEUED, ENDED = "queued", "ended"
LIVE = ("todo", "doing")
"""The states of a queue row that a worker has in hand, or will have."""
NO_SLOT = ""
"""The key of the open request of a job without slots."""

DEFER = select(
    func.unnest(defer_rows(queue_row(text_value("queue"), literal(RUN_TASK), json_value("args"))))
)
QUEUE = table("procrastinate_jobs", column("id"), column("status"))


@dataclass(frozen=True, slots=True)
class Request:
    """A request's row."""

    id: UUID
    job: str
    """The job's identity."""
    scheduled_at: datetime | None
    requested_at: datetime
    queue_row: int | None
    state: str
    runs: int
    """How many a worker has begun."""
    body: str
    """JSON: what the request is about; once it has ended, what became of it."""

    @property
    def about(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def given_up(self) -> bool:
        """Whether it ended with an error, which the workers tried again until they gave it up."""
        return self.state == ENDED and "error" in self.about


@dataclass(frozen=True, slots=True)
class Queued:
    """A worker was asked for a run, by this wish or by one before it."""

    job: str
    slot: datetime | None
    next_slot: datetime | None
    instance: str
    request: UUID
    fresh: bool
    """Whether it was this one."""
    given_up: bool = False
    """The workers have tried it, and try it no more."""


class Requests:
    """The requests' table in the user's metadata, for one extension object."""

    def __init__(self, metadata: MetaData) -> None:
        self.table = make_request_table(metadata)
        self._columns = [self.table.c[name] for name in Request.__slots__]

    def get(
        self, tx: GuardedTransaction, namespace: str, request: UUID
    ) -> tuple[Request, str | None] | None:
        """Return the request of an id, and the state of its row in the queue, at one moment."""
        with queue_told():
            return self._look(tx, self.table.c.id == request, self.table.c.namespace == namespace)

    def put(
        self, tx: GuardedTransaction, run: Run, body: str, renews: bool = True
    ) -> tuple[Request, bool]:
        """Have the slot of *run* on the queue; return the request, and whether it was not there.

        Of several at once all but one wait for that one's row. What they see of the queue is read
        after that, by a statement of its own: the one that waited has a snapshot from before.

        :param renews: whether it is put there again if the workers have given it up.
        """
        with queue_told():
            found = self._look(tx, *self._slot(run))
            if found is not None and _stands(*found, renews):
                return found[0], False
            known, queue_state = self._take(tx, run, body)
            if _stands(known, queue_state, renews):
                return known, False
            return self._defer(tx, known, run, body), True

    def _defer(self, tx: GuardedTransaction, known: Request, run: Run, body: str) -> Request:
        slot = run.slot.isoformat() if run.slot else None
        args = {"job": run.identity, "slot": slot, "request": str(known.id)}
        queue = queue_name(run.namespace, JOBS_QUEUE)
        row = tx.execute(DEFER, {"queue": queue, "args": json.dumps(args)}).scalar_one()
        anew = {**_about(run, body), "queue_row": row, "ended_at": None}
        tx.execute(update(self.table).where(self.table.c.id == known.id).values(anew))
        return replace(known, queue_row=row, state=QUEUED)

    def is_kept(self, request: Request, tx: GuardedTransaction) -> bool:
        """Tell whether what :meth:`put` wrote is there."""
        mine = self.table.c.id == request.id, self.table.c.queue_row == request.queue_row
        return tx.execute(select(self.table.c.id).where(*mine)).one_or_none() is not None

    def begin(self, tx: GuardedTransaction, request: UUID, queue_row: int) -> Request | None:
        """Count a run that a worker begins; ``None`` where the request is not for this row now."""
        mine = self._open(request, queue_row).values(runs=self.table.c.runs + 1)
        return self._one(tx, mine.returning(*self._columns))

    def kept_run(self, tx: GuardedTransaction, runs: Table, request: Request) -> Row[Any] | None:
        """Return the run that was kept for the request, though its worker did not come to say so.

        No other request of the job and slot was open meanwhile, so no worker ran it for another.
        """
        run, mine = runs.c, self.table.c
        asked = (
            mine.id == request.id,
            run.namespace == mine.namespace,
            run.job == mine.job,
            run.scheduled_at == request.scheduled_at,
            run.started_at >= mine.requested_at,
            run.trigger == "queue",
            run.state == "done",
        )
        return tx.execute(select(runs).where(*asked)).first()

    def give_back(self, tx: GuardedTransaction, request: Request) -> None:
        """Take back the count of a run that was none."""
        mine = self._open(request.id, request.queue_row)
        tx.execute(mine.values(runs=self.table.c.runs - 1))

    def end(self, tx: GuardedTransaction, request: Request, body: str) -> None:
        """Write what became of it; a job without slots can be asked for again from now on."""
        key = self.table.c.slot_key
        freed = case((key == NO_SLOT, cast(self.table.c.id, Text)), else_=key)
        ended = {"state": ENDED, "body": body, "slot_key": freed, "ended_at": STAMP}
        mine = self._open(request.id, request.queue_row)
        tx.execute(mine.values(ended), {"stamp": tx.stamp()})

    def _slot(self, run: Run) -> tuple[ColumnElement[bool], ...]:
        row = self.table.c
        return (
            row.namespace == run.namespace,
            row.job == run.identity,
            row.slot_key == (run.slot_key or NO_SLOT),
        )

    def _look(
        self, tx: GuardedTransaction, *which: ColumnElement[bool]
    ) -> tuple[Request, str | None] | None:
        """Return a request, and the state of its row in the queue; ``None`` where that is gone.

        By one statement, which has one snapshot: a run that ends meanwhile is seen before or after.
        """
        of_row = select(cast(QUEUE.c.status, Text)).where(QUEUE.c.id == self.table.c.queue_row)
        queue_state = of_row.scalar_subquery().label("queue_state")
        found = tx.execute(select(*self._columns, queue_state).where(*which)).mappings().first()
        if found is None:
            return None
        about = {name: found[name] for name in Request.__slots__}
        return Request(**about), found["queue_state"]

    def _take(self, tx: GuardedTransaction, run: Run, body: str) -> tuple[Request, str | None]:
        """Return the slot's row, made where there is none, and locked."""
        table = self.table
        insert = postgresql.insert(table).values(id=uuid4(), **_about(run, body))
        upsert = insert.on_conflict_do_update(
            index_elements=[table.c.namespace, table.c.job, table.c.slot_key],
            set_={"state": table.c.state},
        )
        taken = tx.execute(upsert.returning(table.c.id)).scalar_one()
        found = self._look(tx, table.c.id == taken)
        assert found is not None
        return found

    def _open(self, request: UUID, queue_row: int | None) -> Any:
        table = self.table
        return update(table).where(
            table.c.id == request, table.c.queue_row == queue_row, table.c.state == QUEUED
        )

    def _one(self, tx: GuardedTransaction, statement: Any) -> Request | None:
        row = tx.execute(statement).one_or_none()
        return Request(**row._mapping) if row else None


def _stands(request: Request, queue_state: str | None, renews: bool) -> bool:
    """Tell whether a worker has the request in hand, or will have, or is not to have it again."""
    live = request.state == QUEUED and queue_state in LIVE
    return live or (request.given_up and not renews)


def _about(run: Run, body: str) -> dict[str, Any]:
    return {
        "namespace": run.namespace,
        "job": run.identity,
        "slot_key": run.slot_key or NO_SLOT,
        "scheduled_at": run.slot,
        "trigger": run.trigger,
        "instance": run.instance,
        "app": run.app,
        "requested_at": run.started_at,
        "state": QUEUED,
        "runs": 0,
        "body": body,
    }
