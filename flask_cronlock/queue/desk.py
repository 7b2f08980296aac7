"""What a worker needs to work off a task's items, and what it writes of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flask import Flask
from sqlalchemy import text

from ..exceptions import NotDone, OutcomeUnknown, Unavailable
from ..instance import with_pid
from ..limits import LOCK_WAIT, SHORT_TIMEOUT
from ..state import AppState
from ..texts import error_text, loggable
from ..transaction import GuardedTransaction
from .item import Item
from .records import ENDED, Record, Records, State
from .task import Delivery, Task

logger = logging.getLogger("flask_cronlock")

PATIENCE = (1.0, 2.0, 4.0)
"""Seconds to wait before what became of a call is written again, where the database is away."""
LIMIT_WAIT = text("SELECT set_config('lock_timeout', :lock_timeout, true)")


@dataclass(slots=True)
class Desk:
    """One task of one app, in a worker's hands."""

    app: Flask
    state: AppState
    task: Task
    _clock: datetime | None = None
    _read_at: float = field(default_factory=time.monotonic)

    @property
    def records(self) -> Records:
        return self.state.records

    @property
    def timeout(self) -> timedelta:
        return self.task.timeout or self.state.config.timeout

    def transaction(self) -> GuardedTransaction:
        """Return the transaction of items whose effect is in the database."""
        wait = min(LOCK_WAIT, self.timeout / 2)
        return GuardedTransaction(self.state.db.engine, self.timeout, self._instance, wait)

    @contextmanager
    def short(self) -> Iterator[GuardedTransaction]:
        """Yield a transaction of its own for a record, and commit it."""
        engine = self.state.db.engine
        with GuardedTransaction(engine, SHORT_TIMEOUT, self._instance) as tx:
            self._clock, self._read_at = tx.clock, time.monotonic()
            yield tx
            tx.prove()
            tx.commit()

    @property
    def _instance(self) -> str:
        return with_pid(self.state.config.instance)

    def time_in(self, wait: timedelta) -> datetime | None:
        """Return when *wait* will be over, by the database's clock; ``None`` if it was not read."""
        elapsed = timedelta(seconds=time.monotonic() - self._read_at)
        return self._clock + elapsed + wait if self._clock else None

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
        """Give up an item that no attempt is left for, or may follow; ``None`` if it has ended."""
        with self.short() as tx:
            record = self.records.look(tx, [item.key]).get(item.key)
            if record is None or record.state in ENDED:
                return None
            died = record.state is State.STARTED
            words = (
                f"its worker died in attempt {record.attempts}" if died else "no attempt is left"
            )
            in_doubt = self.task.delivery is not Delivery.ONCE and (died or record.in_doubt)
            fate = Record(State.DOUBT if in_doubt else State.FAILED, record.attempts, in_doubt)
            self.records.end(tx, item, fate, words)
        self._log(item, fate, None, words)
        return fate

    def write(self, item: Item, record: Record, error: str | None = None) -> None:
        """Write what became of an item."""
        self._patiently(lambda tx: self.records.end(tx, item, record, error))

    def give_back(self, items: Collection[Item], xid: str) -> None:
        """Take back the claims of the transaction *xid* that a raw COMMIT in a task has kept."""
        self._patiently(lambda tx: self.records.give_back(tx, items, xid))

    def _patiently(self, write: Callable[[GuardedTransaction], object]) -> None:
        """Do *write* in a transaction of its own, again where the database is away for a while."""
        for seconds in (*PATIENCE, None):
            try:
                with self.short() as tx:
                    write(tx)
                return
            except (Unavailable, OutcomeUnknown):
                if seconds is None:
                    raise
                time.sleep(seconds)

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
