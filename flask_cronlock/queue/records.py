"""The record of each item: what keeps it from being done twice, and shows what became of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Integer,
    MetaData,
    Text,
    and_,
    bindparam,
    column,
    delete,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    table,
    text,
)
from sqlalchemy.dialects import postgresql

from ..tables import make_item_table
from ..transaction import GuardedTransaction
from .item import Item
from .task import Delivery


class State(StrEnum):
    """What became of an item so far."""

    STARTED = "started"
    """It was called; where no worker has it in hand, one died with it."""
    WAITING = "waiting"
    """An attempt failed; another follows."""
    DONE = "done"
    DOUBT = "doubt"
    """It may or may not have been done outside, and is not tried again."""
    FAILED = "failed"
    """It was not done, and is not tried again."""


ENDED = (State.DONE, State.DOUBT, State.FAILED)
OPEN = (State.STARTED, State.WAITING)
QUEUE = table("procrastinate_jobs", column("id"), column("status"))
THIS_ROW = bindparam("this_row", type_=BigInteger)
WRITTEN_BY = text("xmin = CAST(CAST(:xid AS xid8) AS xid)")


@dataclass(frozen=True, slots=True)
class Record:
    """An item's row."""

    state: State
    attempts: int
    in_doubt: bool
    held: bool = False
    """Whether another row of the queue, which a worker has in hand, is where it was started."""


BUSY = Record(State.STARTED, 0, False, held=True)
"""Another worker has it in hand, or what became of it is not known yet."""


class Records:
    """The items' table in the user's metadata, for one extension object."""

    def __init__(self, metadata: MetaData) -> None:
        self.table = make_item_table(metadata)
        self._claim_all = self._all_done()
        self._claim = self._upsert(State.DONE)
        self._begin = self._upsert(State.STARTED)

    def look(
        self, tx: GuardedTransaction, keys: Sequence[str], queue_row: int
    ) -> dict[str, Record]:
        """Return the rows that there are of *keys*, as they are for a row of the queue."""
        row, held = self.table.c, self._held.label("held")
        known = select(row.key, row.state, row.attempts, row.in_doubt, held).where(
            row.key == func.any(bindparam("keys", type_=ARRAY(Text)))
        )
        return {
            found.key: Record(State(found.state), found.attempts, found.in_doubt, found.held)
            for found in tx.execute(known, {"keys": list(keys), "this_row": queue_row})
        }

    def claim_all(self, tx: GuardedTransaction, items: Collection[Item]) -> set[str]:
        """Write ``done`` for all of *items* that have no row; return the keys of those.

        In this transaction what they do is done, too, or neither is kept. By their order, so that
        two workers with the same items do not wait for each other.
        """
        task = next(iter(items)).task.name
        about = {"task": task, "instance": tx.instance, "keys": sorted(i.key for i in items)}
        namespace = next(iter(items)).origin.namespace
        return set(tx.execute(self._claim_all, {**about, "namespace": namespace}).scalars())

    def give_back(self, tx: GuardedTransaction, items: Collection[Item], xid: str | None) -> None:
        """Take back the claims that transaction *xid* has on *items*, which were not called."""
        keys = bindparam("keys", [item.key for item in items], type_=ARRAY(Text))
        mine = self.table.c.key == func.any(keys)
        tx.execute(delete(self.table).where(mine, WRITTEN_BY.bindparams(xid=xid)))

    def claim(
        self, tx: GuardedTransaction, item: Item, counted: bool, queue_row: int
    ) -> Record | None:
        """Write ``done`` in the transaction of what is done; ``None`` where another has ended it.

        :param counted: whether this attempt was counted before.
        """
        about = {"args": None, "queue_row": queue_row}
        more = int(not counted)
        return self._put(tx, self._claim, item, {**about, "more": more, "follows": True})

    def begin(
        self, tx: GuardedTransaction, item: Item, follows: bool, queue_row: int
    ) -> Record | None:
        """Count an attempt, to be committed before the call; ``None`` where none is to be made.

        :param follows: whether one may be made after another one that never ended.
        :param queue_row: where the item is from; the same one may be in another row, too.
        """
        about = {"args": json.dumps(item.as_row()), "queue_row": queue_row}
        return self._put(tx, self._begin, item, {**about, "more": 1, "follows": follows})

    def _put(
        self, tx: GuardedTransaction, statement: Any, item: Item, values: Mapping[str, Any]
    ) -> Record | None:
        about = {
            **_about(item, tx),
            "most": item.task.attempts,
            "doubts": item.task.delivery is not Delivery.ONCE,
            "this_row": values["queue_row"],
        }
        row = tx.execute(statement, {**about, **values}).one_or_none()
        return row and Record(State(row.state), row.attempts, row.in_doubt)

    def end(
        self,
        tx: GuardedTransaction,
        item: Item,
        record: Record,
        error: str | None = None,
    ) -> bool:
        """Write what became of an attempt; what has ended meanwhile stays, but for a doubt.

        :returns: whether it was written.
        """
        values = {
            **_about(item, tx),
            "state": record.state,
            "attempts": record.attempts,
            "in_doubt": record.in_doubt,
            "error": error,
            "args": None if record.state is State.DONE else json.dumps(item.as_row()),
            "finished_at": func.clock_timestamp(),
        }
        insert = postgresql.insert(self.table).values(started_at=func.clock_timestamp(), **values)
        kept = ("state", "attempts", "in_doubt", "error", "args", "finished_at", "instance")
        settles = record.state is State.DONE
        states = [*OPEN, State.DOUBT] if settles else OPEN
        upsert = insert.on_conflict_do_update(
            index_elements=[self.table.c.key],
            set_={name: insert.excluded[name] for name in kept},
            where=self.table.c.state.in_(states),
        )
        return tx.execute(upsert.returning(self.table.c.key)).one_or_none() is not None

    @property
    def _held(self) -> Any:
        """Return whether a worker has the item in hand from another row of the queue.

        A worker that died with it in hand has its row taken from it; then this is false.
        """
        started = and_(
            self.table.c.state == State.STARTED.value, self.table.c.queue_row != THIS_ROW
        )
        doing = and_(
            QUEUE.c.id == self.table.c.queue_row, QUEUE.c.status == literal_column("'doing'")
        )
        return and_(started, select(QUEUE.c.id).where(doing).exists())

    def _all_done(self) -> Any:
        key = func.unnest(bindparam("keys", type_=ARRAY(Text))).column_valued("key")
        now = func.clock_timestamp()
        names = ["key", "namespace", "task", "state", "attempts", "in_doubt", "instance"]
        rows = select(
            key,
            bindparam("namespace", type_=Text),
            bindparam("task", type_=Text),
            literal(State.DONE.value),
            literal(1),
            literal(False),
            bindparam("instance", type_=Text),
            now,
            now,
        )
        insert = postgresql.insert(self.table)
        insert = insert.from_select([*names, "started_at", "finished_at"], rows)
        return insert.on_conflict_do_nothing(index_elements=["key"]).returning(self.table.c.key)

    def _upsert(self, state: State) -> Any:
        """Return the statement that takes an item up, unless it has ended or is used up."""
        table, now = self.table, func.clock_timestamp()
        follows = bindparam("follows", type_=Boolean)
        more = bindparam("more", type_=Integer)
        insert = postgresql.insert(table).values(
            state=state.value,
            attempts=1,
            in_doubt=False,
            started_at=now,
            finished_at=None if state is State.STARTED else now,
        )
        left = table.c.attempts + more <= bindparam("most", type_=Integer)
        was_started = table.c.state == State.STARTED.value
        return insert.on_conflict_do_update(
            index_elements=[table.c.key],
            set_={
                "state": state.value,
                "attempts": table.c.attempts + more,
                "in_doubt": or_(table.c.in_doubt, bindparam("doubts", type_=Boolean) & was_started),
                "started_at": now,
                "finished_at": insert.excluded.finished_at,
                "instance": insert.excluded.instance,
                "args": insert.excluded.args,
                "queue_row": insert.excluded.queue_row,
                "error": table.c.error if state is State.STARTED else None,
            },
            where=and_(
                table.c.state.in_(OPEN), left, or_(follows, not_(was_started)), not_(self._held)
            ),
        ).returning(table.c.state, table.c.attempts, table.c.in_doubt)


def _about(item: Item, tx: GuardedTransaction) -> Mapping[str, Any]:
    return {
        "key": item.key,
        "namespace": item.origin.namespace,
        "task": item.task.name,
        "instance": tx.instance,
    }
