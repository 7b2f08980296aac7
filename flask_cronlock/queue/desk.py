"""What a worker needs to work off a task's items, and what it writes of them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from flask import Flask
from sqlalchemy.exc import DBAPIError

from ..exceptions import NotDone
from ..instance import with_pid
from ..limits import LOCK_WAIT
from ..sqlerrors import waited_for_row
from ..state import AppState
from ..texts import error_text, loggable
from ..transaction import GuardedTransaction
from .brief import brief_write, patiently
from .item import Item
from .records import BUSY, ENDED, Record, Records, State
from .task import Delivery, Task

logger = logging.getLogger("flask_cronlock")


@dataclass(slots=True)
class Desk:
    """One task of one app, in a worker's hands."""

    app: Flask
    state: AppState
    task: Task
    queue_row: int
    """The queue's number of what is being worked off."""

    @property
    def records(self) -> Records:
        return self.state.records

    @property
    def timeout(self) -> timedelta:
        return self.task.timeout or self.state.config.timeout

    def transaction(self) -> GuardedTransaction:
        """Return the transaction of items whose effect is in the database."""
        wait = min(LOCK_WAIT, self.timeout / 2)
        instance = with_pid(self.state.config.instance)
        return GuardedTransaction(self.state.db.engine, self.timeout, instance, wait)

    def look(self, keys: Sequence[str]) -> dict[str, Record]:
        """Return what is recorded of the items with *keys*."""
        with self.state.brief() as tx:
            return self.records.look(tx, keys, self.queue_row)

    def begin(self, item: Item, follows: bool) -> Record | None:
        """Count an attempt, and commit that; ``None`` where none is to be made.

        :param follows: whether one may be made after another one that never ended.
        """
        with self.state.brief() as tx:
            try:
                record = self.records.begin(tx, item, follows, self.queue_row)
            except DBAPIError as error:
                if not waited_for_row(error):
                    raise
                return BUSY
            tx.prove()
            tx.commit()
        return record

    def fail(self, item: Item, record: Record, error: BaseException) -> Record:
        """Write, and log, that an attempt failed; return what is to become of the item."""
        fate = self._fate(record, isinstance(error, NotDone))
        words = error_text(error, self.state.config.secrets)
        self.write(item, fate, words)
        self._log(item, fate, error, words)
        return fate

    def _fate(self, record: Record, sure: bool) -> Record:
        """Return what becomes of an item after a failure.

        :param sure: whether nothing is known to have been done outside.
        """
        delivery = self.task.delivery
        in_doubt = delivery is not Delivery.ONCE and (record.in_doubt or not sure)
        again = record.attempts < self.task.attempts
        if again and (sure or delivery is not Delivery.AT_MOST_ONCE):
            return Record(State.WAITING, record.attempts, in_doubt)
        return Record(State.DOUBT if in_doubt else State.FAILED, record.attempts, in_doubt)

    def abandon(self, item: Item) -> Record | None:
        """Give up an item that no attempt is left for, or may follow; ``None`` if it has ended.

        :data:`BUSY` where another worker has it in hand.
        """
        record = self.look([item.key]).get(item.key)
        if record is None or record.state in ENDED:
            return None
        if record.held:
            return BUSY
        died = record.state is State.STARTED
        words = f"its worker died in attempt {record.attempts}" if died else "no attempt is left"
        in_doubt = self.task.delivery is not Delivery.ONCE and (died or record.in_doubt)
        fate = Record(State.DOUBT if in_doubt else State.FAILED, record.attempts, in_doubt)
        if not self.write(item, fate, words):
            return None
        self._log(item, fate, None, words)
        return fate

    def write(self, item: Item, record: Record, error: str | None = None) -> bool:
        """Write what became of an item, and tell whether it had not ended before."""

        def write() -> bool:
            with brief_write(self.state) as tx:
                return self.records.end(tx, item, record, error)

        return patiently(write)

    def give_back(self, items: Collection[Item], xid: str) -> None:
        """Take back the claims of the transaction *xid* that a raw COMMIT in a task has kept."""

        def write() -> None:
            with brief_write(self.state) as tx:
                self.records.give_back(tx, items, xid)

        patiently(write)

    def _log(self, item: Item, fate: Record, error: BaseException | None, words: str) -> None:
        """Log a failure, with its traceback once the item is given up."""
        ended = fate.state in ENDED
        level = logging.ERROR if ended else logging.WARNING
        then = {State.DOUBT: "it is in doubt", State.FAILED: "it is given up"}.get(
            fate.state, f"again in {self.task.wait_after(fate.attempts).total_seconds():.0f} s"
        )
        shown, trace = loggable(error, self.state.config.secrets) if error and ended else (None, "")
        logger.log(
            level,
            "Task %s, item %s: attempt %d of %d failed, %s: %s",
            self.task.name,
            item.key,
            fate.attempts,
            self.task.attempts,
            then,
            words + trace,
            exc_info=shown,
            extra={"action": f"item_{fate.state}", "task": self.task.name, "item": item.key},
        )
