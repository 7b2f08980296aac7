"""What the ledger says of the slots that a clock asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ARRAY, Text, and_, bindparam, func, or_, select, true
from sqlalchemy.dialects import postgresql

from .ledger import Ledger
from .schedule import Slot
from .tables import Stamp
from .transaction import GuardedTransaction

RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (1, 5, 30, 120, 600))
"""How long after each failed attempt a clock tries a slot again; after the last it is left."""


@dataclass(frozen=True, slots=True)
class Due:
    """What the ledger says of a slot."""

    taken: bool
    """It ran, or is broken."""
    paused: bool
    attempts: int
    """How often it failed."""
    retry_in: timedelta
    """Not more than zero: it may be tried now."""

    @property
    def given_up(self) -> bool:
        """Tell whether it failed too often to be tried again."""
        return self.attempts > len(RETRY_AFTER)


class Dues:
    """Asks the tables of *ledger* for the jobs of one namespace."""

    def __init__(self, ledger: Ledger, namespace: str) -> None:
        self._run, self._attempt, self._job = ledger.run.c, ledger.attempt.c, ledger.job.c
        self._ledger, self._namespace = ledger, namespace
        self._ask = self._build_ask()
        self._add = self._build_add()

    def know(self, tx: GuardedTransaction, schedules: Mapping[str, str]) -> dict[str, datetime]:
        """Return since when each job is known with its schedule; write down what is new."""
        known = self._known(tx, schedules)
        fresh = sorted(schedules.keys() - known.keys())
        if fresh:
            texts = [schedules[job] for job in fresh]
            about = {"jobs": fresh, "schedules": texts, "since": tx.clock}
            tx.execute(self._add, {**about, "in_namespace": self._namespace})
            tx.prove()  # With its id, a COMMIT whose answer is lost is asked for.
            known = self._known(tx, schedules)
        return known

    def _known(self, tx: GuardedTransaction, schedules: Mapping[str, str]) -> dict[str, datetime]:
        job = self._job
        mine = and_(job.namespace == self._namespace, job.job == func.any(list(schedules)))
        rows = tx.execute(select(job.job, job.schedule, job.known_since).where(mine))
        # One that lies ahead was written while the database's clock was ahead.
        same = [row for row in rows if row.schedule == schedules[row.job] and row.known_since]
        since = {row.job: row.known_since.astimezone(UTC) for row in same}
        return {job: moment for job, moment in since.items() if moment <= tx.clock}

    def ask(self, tx: GuardedTransaction, slots: Sequence[tuple[str, Slot]]) -> list[Due]:
        """Return what the ledger says of *slots*, each given with its job's identity, in order."""
        if not slots:
            return []
        rows = tx.execute(
            self._ask,
            {
                "jobs": [job for job, _ in slots],
                "keys": [slot.key for _, slot in slots],
                "times": [slot.at for _, slot in slots],
                "in_namespace": self._namespace,
            },
        )
        return [
            Due(
                row.state in ("done", "broken") or bool(row.pruned),
                row.paused_at is not None,
                row.attempts,
                _retry_in(row.attempts, row.last, tx.clock),
            )
            for row in rows
        ]

    def _build_add(self) -> Any:
        job = self._ledger.job
        fresh = (
            func.unnest(
                bindparam("jobs", type_=ARRAY(Text)), bindparam("schedules", type_=ARRAY(Text))
            )
            .table_valued("job", "schedule")
            .render_derived(name="fresh")
        )
        columns = ["namespace", "job", "schedule", "known_since"]
        values = select(
            bindparam("in_namespace", type_=Text),
            fresh.c.job,
            fresh.c.schedule,
            bindparam("since", type_=Stamp),
        )
        # In one order, so that two clocks that start at once do not wait for each other in turn.
        insert = postgresql.insert(job).from_select(columns, values.order_by(fresh.c.job))
        return insert.on_conflict_do_update(
            index_elements=[job.c.namespace, job.c.job],
            set_={name: insert.excluded[name] for name in ("schedule", "known_since")},
            where=or_(
                job.c.known_since.is_(None),
                job.c.known_since > insert.excluded.known_since,
                job.c.schedule.is_distinct_from(insert.excluded.schedule),
            ),
        )

    def _build_ask(self) -> Any:
        run, attempt, job = self._run, self._attempt, self._job
        namespace = bindparam("in_namespace", type_=Text)
        asked = (
            func.unnest(
                bindparam("jobs", type_=ARRAY(Text)),
                bindparam("keys", type_=ARRAY(Text)),
                bindparam("times", type_=ARRAY(Stamp)),
            )
            .table_valued("job", "key", "time", with_ordinality="place")
            .render_derived(name="asked")
        )
        failed = (
            select(func.count().label("attempts"), func.max(attempt.finished_at).label("last"))
            .where(
                attempt.namespace == namespace,
                attempt.job == asked.c.job,
                attempt.slot_key == asked.c.key,
            )
            .lateral("failed")
        )
        its_run = and_(
            run.namespace == namespace, run.job == asked.c.job, run.slot_key == asked.c.key
        )
        its_job = and_(job.namespace == namespace, job.job == asked.c.job)
        return (
            select(
                run.state,
                job.paused_at,
                (asked.c.time <= job.pruned_through).label("pruned"),
                failed.c.attempts,
                failed.c.last,
            )
            .select_from(asked)
            .outerjoin(self._ledger.run, its_run)
            .outerjoin(self._ledger.job, its_job)
            .join(failed, true())
            .order_by(asked.c.place)
        )


def _retry_in(attempts: int, last: datetime | None, clock: datetime) -> timedelta:
    if last is None:
        return timedelta()
    wait = RETRY_AFTER[min(attempts, len(RETRY_AFTER)) - 1]
    return min(wait, last.astimezone(UTC) + wait - clock)
