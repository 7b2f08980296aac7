"""The statements of a run."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Subquery,
    Table,
    Text,
    and_,
    bindparam,
    case,
    false,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from .tables import Stamp

# Not named as the columns are: those names belong to the values of an INSERT or UPDATE.
NAMESPACE = bindparam("in_namespace", type_=Text)
SLOT_KEY = bindparam("at_slot_key", type_=Text)
SCHEDULED_AT = bindparam("at_slot", type_=Stamp)
STAMP = func.coalesce(bindparam("stamp", type_=Stamp), func.clock_timestamp())
"""The database's clock, or the one that a test has put in its place."""


PROOF = text("""
SELECT pg_backend_pid() AS pid, now() AS began,
       CAST(pg_current_xact_id_if_assigned() AS text) AS xid
""")
XACT_STATUS = text("SELECT pg_xact_status(CAST(:xid AS xid8))")


def _name(number: int) -> ColumnElement[str]:
    return bindparam(f"name{number}", type_=Text)


def try_lock(run: Table, job: Table, names: int) -> Any:
    """Return the SELECT whose CASE is evaluated in its order: a done slot touches no lock.

    The locks of a job's several *names* are taken one inside the other: of two runs that each had
    one of them, neither would go on.
    """
    locked: Any = literal_column("'locked'")
    for number in reversed(range(names)):
        key = func.hashtextextended(bindparam(f"key{number}", type_=Text), 0)
        locked = case((func.pg_try_advisory_xact_lock(key), locked), else_="already running")
    return _admission(run, job, names, locked)


def look(run: Table, job: Table, names: int) -> Any:
    """Return the SELECT of the same answers, but that it touches no lock: else ``open``."""
    return _admission(run, job, names, literal_column("'open'"))


def _admission(run: Table, job: Table, names: int, otherwise: Any) -> Any:
    slot = _this_slot(run, names)
    forced = bindparam("forced", type_=Boolean)
    pruned = and_(SLOT_KEY.is_not(None), job.c.pruned_through >= SCHEDULED_AT)
    answer = case(
        (and_(~forced, job.c.paused_at.is_not(None)), "paused"),
        (slot.c.state == "done", "already ran"),
        (and_(~forced, pruned), "already ran"),
        (slot.c.state.in_(["running", "broken"]), "broken"),
        else_=otherwise,
    )
    this_job = and_(job.c.namespace == NAMESPACE, job.c.job == _name(0))
    one = select(literal_column("1").label("row")).subquery()
    rows = one.outerjoin(slot, literal_column("true")).outerjoin(job, this_job)
    return select(slot.c.finished_at, slot.c.app, answer.label("answer")).select_from(rows)


def _this_slot(run: Table, names: int) -> Subquery:
    """Return the slot's row: of several names' rows the one that ran, else one that began."""
    found = select(run.c.state, run.c.finished_at, run.c.app).where(
        run.c.namespace == NAMESPACE,
        run.c.job.in_([_name(number) for number in range(names)]),
        run.c.slot_key == SLOT_KEY,
    )
    if names > 1:
        rank = case((run.c.state == "done", 0), (run.c.state == "missed", 2), else_=1)
        found = found.order_by(rank)
    return found.limit(1).subquery()


def standing(run: Table, names: int) -> Any:
    """Return the SELECT of what stands in a slot that could not be claimed."""
    return select(_this_slot(run, names))


def claim(run: Table, job: Table, names: int) -> Any:
    """Return the INSERT that takes the slot, also from the row that says that it was missed.

    A row comes back only where it was taken; with it the wait for locks, which was bounded for
    this statement, goes back to what it was. What ran before is read here, and not with the lock,
    whose statement has a snapshot older than the lock.
    """
    insert = postgresql.insert(run)
    return insert.on_conflict_do_update(
        index_elements=[run.c.namespace, run.c.job, run.c.slot_key],
        set_={column.name: insert.excluded[column.name] for column in run.c},
        where=run.c.state == "missed",
    ).returning(
        func.pg_current_xact_id().cast(Text).label("xid"),
        func.greatest(*[_last_ran(run, number) for number in range(names)]).label("last_ran"),
        _counted_since(job).label("since"),
        _ran_as(run, range(1, names)).label("ran"),
        func.set_config("lock_timeout", bindparam("lock_timeout"), True),
    )


def _last_ran(run: Table, number: int) -> Any:
    earlier = run.alias()
    return (
        select(func.max(earlier.c.scheduled_at))
        .where(
            earlier.c.namespace == NAMESPACE,
            earlier.c.job == _name(number),
            earlier.c.state == "done",
            earlier.c.slot_key.is_not(None),
            earlier.c.scheduled_at < SCHEDULED_AT,
        )
        .scalar_subquery()
    )


def _ran_as(run: Table, numbers: range) -> Any:
    """Return whether the slot ran under another name, which no conflict tells."""
    if not numbers:
        return false()
    other = run.alias()
    same_slot = and_(other.c.namespace == NAMESPACE, other.c.slot_key == SLOT_KEY)
    names = other.c.job.in_([_name(number) for number in numbers])
    return select(other.c.id).where(same_slot, names, other.c.state != "missed").exists()


def _counted_since(job: Table) -> Any:
    return (
        select(func.greatest(job.c.known_since, job.c.pruned_through))
        .where(job.c.namespace == NAMESPACE, job.c.job == _name(0))
        .scalar_subquery()
    )


def miss(run: Table) -> Any:
    """Return the INSERT that records a slot which nobody will run; a row that is there stays."""
    return postgresql.insert(run).on_conflict_do_nothing(
        index_elements=[run.c.namespace, run.c.job, run.c.slot_key]
    )


def finish(run: Table) -> Any:
    """Return the one statement that writes ``done``: only in the claim's own transaction."""
    return (
        update(run)
        .where(
            run.c.id == bindparam("run_id"),
            run.c.state == "running",
            func.pg_backend_pid() == bindparam("pid"),
            func.now() == bindparam("began", type_=Stamp),
            func.pg_current_xact_id().cast(Text) == bindparam("xid"),
        )
        .values(state="done", finished_at=STAMP, value=bindparam("result"))
        .returning(run.c.finished_at)
    )
