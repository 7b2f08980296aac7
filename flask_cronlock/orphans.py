"""Names that the ledger knows and no registered job has or had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Text, bindparam, func, literal_column, select, union

from .ledger import Ledger
from .statements import NAMESPACE
from .transaction import GuardedTransaction

MOST_COUNTED = 1000
"""More rows of one orphan than these are not counted: that would take as long as they are many."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A name in the ledger that no registered job has or had."""

    name: str
    runs: int
    attempts: int
    """Failed ones; of either at most :data:`MOST_COUNTED` and one more."""
    newest_slot: datetime | None


def find_orphans(
    tx: GuardedTransaction, ledger: Ledger, namespace: str, names: Iterable[str]
) -> list[Orphan]:
    """Return what *ledger* has under none of *names*, by name."""
    known = {"in_namespace": namespace, "known": list(names)}
    rows = tx.execute(_orphans_query(ledger), known)
    return [Orphan(row.job, row.runs, row.attempts, row.newest_slot) for row in rows]


def _orphans_query(ledger: Ledger) -> Any:
    found = union(*(_names_in(table) for table in ledger.tables)).subquery()
    known = bindparam("known", type_=ARRAY(Text))
    name, run = found.c.job, ledger.run
    newest = select(func.max(run.c.scheduled_at)).where(_is_of(run, name)).scalar_subquery()
    return (
        select(
            name,
            _count(ledger.run, name).label("runs"),
            _count(ledger.attempt, name).label("attempts"),
            newest.label("newest_slot"),
        )
        .where(name != func.all(known))
        .order_by(name)
    )


def _names_in(table: Any) -> Any:
    """Return the SELECT of the names in *table*.

    It goes from each name to the next by the index, and so takes as long as there are names, not
    as long as there are rows.
    """
    smallest = select(func.min(table.c.job).label("job")).where(table.c.namespace == NAMESPACE)
    names = smallest.cte(f"names_in_{table.name}", recursive=True)
    next_name = smallest.where(table.c.job > names.c.job).scalar_subquery()
    names = names.union_all(select(next_name).where(names.c.job.is_not(None)))
    return select(names.c.job).where(names.c.job.is_not(None))


def _count(table: Any, name: Any) -> Any:
    some: Any = select(literal_column("1")).where(_is_of(table, name)).limit(MOST_COUNTED + 1)
    counted = some.correlate(name.table).lateral()
    return select(func.count()).select_from(counted).scalar_subquery()


def _is_of(table: Any, name: Any) -> Any:
    return (table.c.namespace == NAMESPACE) & (table.c.job == name)
