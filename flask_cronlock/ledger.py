"""The ledger: which slots are claimed, done, missed or broken, and which attempts failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import MetaData, Table, bindparam, insert, select, update
from sqlalchemy.exc import DBAPIError

from . import statements
from .exceptions import ConfigError, TransactionEnded
from .holders import Holder, find_holder
from .limits import LIMIT_WAIT, milliseconds
from .run import Run
from .schedule import Slot
from .sqlerrors import waited_for_row
from .tables import make_tables
from .transaction import GuardedTransaction

BROKEN_MEANWHILE = "broken meanwhile"


@dataclass(frozen=True, slots=True)
class Admission:
    """What the ledger and the lock say to a wish to run."""

    answer: str
    """``locked`` or ``open`` (go on), ``broken``, ``broken meanwhile``, or the reason to skip."""
    holder: Holder | None
    ran_at: datetime | None
    run_app: str | None

    @property
    def locked(self) -> bool:
        return self.answer == "locked"

    @property
    def open(self) -> bool:
        return self.answer == "open"

    @property
    def broken(self) -> bool:
        return self.answer in ("broken", BROKEN_MEANWHILE)


LookBack = Callable[[Run, datetime | None, datetime | None], list[Slot]]
"""Takes the run, the newest slot before it that ran, and the time from which slots count as missed;
returns the slots that were missed."""


class Ledger:
    """The three tables in the user's metadata, for one extension object."""

    def __init__(self, metadata: MetaData) -> None:
        self.run, self.attempt, self.job = make_tables(metadata)
        self._miss = statements.miss(self.run)
        self._by_names: dict[int, tuple[Any, Any]] = {}
        self._finish = statements.finish(self.run)
        self._break = (
            update(self.run)
            .where(self.run.c.state == "running")
            .values(state="broken", finished_at=statements.STAMP, error=bindparam("why"))
        )

    @property
    def tables(self) -> list[Table]:
        return [self.run, self.attempt, self.job]

    def _statements(self, run: Run) -> tuple[Any, Any]:
        """Return those that try the lock and that claim, for as many names as the job has."""
        names = len(run.names)
        if names not in self._by_names:
            tables = self.run, self.job, names
            self._by_names[names] = statements.try_lock(*tables), statements.claim(*tables)
        return self._by_names[names]

    def try_lock(self, tx: GuardedTransaction, run: Run, lock_texts: Sequence[str]) -> Admission:
        """Ask, in one statement and in this order: paused, done, broken, and only then the lock."""
        row = tx.execute(
            self._statements(run)[0],
            {
                **_slot_of(run),
                "forced": run.forced,
                **{f"key{number}": text for number, text in enumerate(lock_texts)},
            },
        ).one()
        holder = None
        if row.answer == "already running":
            holders = (find_holder(tx, lock_text) for lock_text in lock_texts)
            holder = next(filter(None, holders), None)
        return Admission(row.answer, holder, row.finished_at, row.app)

    def look(self, tx: GuardedTransaction, run: Run) -> Admission:
        """Say what :meth:`try_lock` would, without the lock: ``open`` where it would ask for it."""
        asked = statements.look(self.run, self.job, len(run.names))
        row = tx.execute(asked, {**_slot_of(run), "forced": run.forced}).one()
        return Admission(row.answer, None, row.finished_at, row.app)

    def claim(self, tx: GuardedTransaction, run: Run, look_back: LookBack) -> Admission | None:
        """Take the slot and record those missed before it; return why it was not to be had.

        A statement of its own: what was read before the lock, or in its statement, has a snapshot
        older than the lock, and decides nothing.
        """
        values = {**_about(run), **_slot_of(run), "state": "running"}
        try:
            row = tx.execute(
                self._statements(run)[1], {**values, "lock_timeout": tx.lock_timeout}
            ).one_or_none()
            if row is None or row.ran:
                return self._standing(tx, run)
            self._record_missed(tx, run, look_back(run, row.last_ran, row.since))
        except DBAPIError as error:
            if not waited_for_row(error):
                raise
            return Admission("already running", None, None, None)
        tx.xid = row.xid
        return None

    def _standing(self, tx: GuardedTransaction, run: Run) -> Admission:
        """Say what became of a slot that was taken after the lock's statement had begun."""
        row = tx.execute(statements.standing(self.run, len(run.names)), _slot_of(run)).one_or_none()
        answers = {"done": "already ran", "running": BROKEN_MEANWHILE, "broken": BROKEN_MEANWHILE}
        if row is None or row.state not in answers:
            raise ConfigError(
                "a trigger on cronlock_run, or a rule, keeps claims from being written: drop it"
            )
        return Admission(answers[row.state], None, row.finished_at, row.app)

    def _record_missed(self, tx: GuardedTransaction, run: Run, missed: list[Slot]) -> None:
        """Record *missed*; a release with another lock key may be running one of them just now."""
        if not missed:
            return
        about = {**_about(run), "state": "missed"}
        slots = [
            {**about, "id": uuid4(), "slot_key": slot.key, "scheduled_at": slot.at}
            for slot in missed
        ]
        tx.execute(LIMIT_WAIT, {"lock_timeout": milliseconds(tx.lock_wait)})
        tx.execute(self._miss.values(slots))
        tx.execute(LIMIT_WAIT, {"lock_timeout": tx.lock_timeout})

    def finish(self, tx: GuardedTransaction, run: Run, value: str) -> datetime:
        """Write ``done``, or raise when this is no longer the transaction of the claim."""
        proof = {"run_id": run.id, "pid": tx.pid, "began": tx.began, "xid": tx.xid}
        row = tx.execute(
            self._finish, {**proof, "result": value, "stamp": tx.stamp()}
        ).one_or_none()
        if row is None:
            raise TransactionEnded
        finished_at: datetime = row.finished_at
        return finished_at

    def is_kept(self, run: Run, tx: GuardedTransaction) -> bool:
        """Tell whether *run* is there and done: its own row, and not an id that is used anew."""
        found = select(self.run.c.id).where(self.run.c.id == run.id, self.run.c.state == "done")
        return tx.execute(found).one_or_none() is not None

    def record_failure(
        self, tx: GuardedTransaction, run: Run, error: str, stamp: datetime | None
    ) -> None:
        """Record a failed attempt, unless its run is there after all.

        A claim that a raw COMMIT made visible becomes ``broken``.
        """
        same_run = self.run.c.id == run.id
        if tx.execute(self._break.where(same_run), {"why": error, "stamp": stamp}).rowcount:
            return
        if tx.execute(select(self.run.c.id).where(same_run)).one_or_none() is None:
            values = {**_about(run), "finished_at": statements.STAMP, "error": error}
            tx.execute(insert(self.attempt).values(values), {"stamp": stamp})

    def mark_broken(self, tx: GuardedTransaction, run: Run) -> None:
        """Mark the slot's claim that a raw COMMIT left behind."""
        same_slot = (
            self.run.c.namespace == run.namespace,
            self.run.c.job.in_(run.names),
            self.run.c.slot_key == run.slot_key,
        )
        why = {"why": "a raw COMMIT, and no end", "stamp": tx.stamp()}
        tx.execute(self._break.where(*same_slot), why)


def _about(run: Run) -> dict[str, Any]:
    """Return a row's columns, but for those of its state."""
    return {
        "id": run.id,
        "namespace": run.namespace,
        "job": run.identity,
        "slot_key": run.slot_key,
        "scheduled_at": run.slot,
        "trigger": run.trigger,
        "forced": run.forced,
        "instance": run.instance,
        "app": run.app,
        "started_at": run.started_at,
    }


def _slot_of(run: Run) -> dict[str, Any]:
    """Return what a slot's row is found by."""
    return {
        "in_namespace": run.namespace,
        "at_slot_key": run.slot_key,
        "at_slot": run.slot,
        **{f"name{number}": name for number, name in enumerate(run.names)},
    }
