"""The tables, and the statements that claim, finish and record a run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from .exceptions import LockLost
from .holders import Holder, find_holder
from .results import Reason
from .run import Run
from .sqlerrors import LOCK_NOT_AVAILABLE, sqlstate
from .tables import Stamp, make_tables
from .transaction import GuardedTransaction


@dataclass(frozen=True, slots=True)
class Admission:
    """What the ledger and the lock say to a wish to run."""

    answer: str
    """``locked`` (go on), ``broken``, or the reason to skip."""
    holder: Holder | None
    ran_at: datetime | None
    run_app: str | None

    @property
    def locked(self) -> bool:
        return self.answer == "locked"

    @property
    def broken(self) -> bool:
        return self.answer == "broken"


class Ledger:
    """The three tables in the user's metadata, for one extension object."""

    def __init__(self, metadata: MetaData) -> None:
        self.run, self.attempt, self.job = make_tables(metadata)
        self._try_lock = self._build_try_lock()
        self._claim = self._build_claim()
        self._finish = self._build_finish()
        self._break = (
            update(self.run)
            .where(self.run.c.state == "running")
            .values(state="broken", finished_at=func.clock_timestamp(), error=bindparam("why"))
        )

    @property
    def tables(self) -> list[Table]:
        return [self.run, self.attempt, self.job]

    def _build_try_lock(self) -> Any:
        """Return the SELECT whose CASE is evaluated in its order: a done slot touches no lock."""
        run, job = self.run.c, self.job.c
        namespace, name = bindparam("namespace", type_=Text), bindparam("job", type_=Text)
        slot_key, forced = bindparam("slot_key", type_=Text), bindparam("forced", type_=Boolean)
        pruned = bindparam("scheduled_at", type_=Stamp) <= job.pruned_through
        key = func.hashtextextended(bindparam("key", type_=Text), 0)
        answer = case(
            (and_(~forced, job.paused_at.is_not(None)), "paused"),
            (run.state == "done", "already ran"),
            (and_(~forced, slot_key.is_not(None), pruned), "already ran"),
            (run.state.in_(["running", "broken"]), "broken"),
            (func.pg_try_advisory_xact_lock(key), "locked"),
            else_="already running",
        )
        this_run = and_(run.namespace == namespace, run.job == name, run.slot_key == slot_key)
        this_job = and_(job.namespace == namespace, job.job == name)
        one = select(literal_column("1").label("row")).subquery()
        rows = one.outerjoin(self.run, this_run).outerjoin(self.job, this_job)
        return select(run.finished_at, run.app, answer.label("answer")).select_from(rows)

    def _build_claim(self) -> Any:
        """Return the INSERT that takes the slot.

        A row comes back only where it was taken; with it the wait for locks, which was bounded
        for this statement, goes back to what it was.
        """
        return (
            postgresql.insert(self.run)
            .on_conflict_do_nothing(
                index_elements=[self.run.c.namespace, self.run.c.job, self.run.c.slot_key]
            )
            .returning(
                func.pg_current_xact_id().cast(Text).label("xid"),
                func.set_config("lock_timeout", bindparam("lock_timeout"), True),
            )
        )

    def _build_finish(self) -> Any:
        """Return the one statement that writes ``done``: only in the claim's own transaction."""
        return (
            update(self.run)
            .where(
                self.run.c.id == bindparam("run_id"),
                self.run.c.state == "running",
                func.pg_backend_pid() == bindparam("pid"),
                func.now() == bindparam("began", type_=Stamp),
                func.pg_current_xact_id().cast(Text) == bindparam("xid"),
            )
            .values(state="done", finished_at=func.clock_timestamp(), value=bindparam("result"))
            .returning(self.run.c.finished_at)
        )

    def try_lock(self, tx: GuardedTransaction, run: Run, lock_text: str) -> Admission:
        """Ask, in one statement and in this order: paused, done, broken, and only then the lock."""
        row = tx.execute(
            self._try_lock,
            {
                "namespace": run.namespace,
                "job": run.identity,
                "slot_key": run.slot_key,
                "scheduled_at": run.slot,
                "forced": run.forced,
                "key": lock_text,
            },
        ).one()
        holder = find_holder(tx, lock_text) if row.answer == "already running" else None
        return Admission(row.answer, holder, row.finished_at, row.app)

    def claim(self, tx: GuardedTransaction, run: Run) -> Reason | None:
        """Take the slot; return ``None``, or the reason why it was not to be had.

        A statement of its own: what was read before the lock, or in its statement, has a snapshot
        older than the lock, and decides nothing.
        """
        values = _about(run)
        try:
            row = tx.execute(
                self._claim, {**values, "state": "running", "lock_timeout": tx.lock_timeout}
            ).one_or_none()
        except Exception as error:
            if sqlstate(error) == LOCK_NOT_AVAILABLE:
                return Reason.ALREADY_RUNNING
            raise
        if row is None:
            return Reason.ALREADY_RAN
        tx.xid = row.xid
        return None

    def finish(self, tx: GuardedTransaction, run: Run, value: str) -> datetime:
        """Write ``done``, or raise when this is no longer the transaction of the claim."""
        proof = {"run_id": run.id, "pid": tx.pid, "began": tx.began, "xid": tx.xid}
        row = tx.execute(self._finish, {**proof, "result": value}).one_or_none()
        if row is None:
            raise LockLost
        finished_at: datetime = row.finished_at
        return finished_at

    def record_failure(self, tx: GuardedTransaction, run: Run, error: str) -> None:
        """Record a failed attempt, unless its run is there after all.

        A claim that a raw COMMIT made visible becomes ``broken``.
        """
        same_run = self.run.c.id == run.id
        if tx.execute(self._break.where(same_run), {"why": error}).rowcount:
            return
        if tx.execute(select(self.run.c.id).where(same_run)).one_or_none() is None:
            values = {**_about(run), "finished_at": func.clock_timestamp(), "error": error}
            tx.execute(insert(self.attempt).values(values))

    def mark_broken(self, tx: GuardedTransaction, run: Run) -> None:
        """Mark the slot's claim that a raw COMMIT left behind."""
        same_slot = (
            self.run.c.namespace == run.namespace,
            self.run.c.job == run.identity,
            self.run.c.slot_key == run.slot_key,
        )
        tx.execute(self._break.where(*same_slot), {"why": "a raw COMMIT, and no end"})


def _about(run: Run) -> dict[str, Any]:
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
