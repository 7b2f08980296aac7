"""A fan-out in one statement: what a SELECT or a RETURNING gives is deferred by the server."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import (
    Delete,
    Insert,
    Select,
    Text,
    Update,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import UserDefinedType

from ..exceptions import DeferError
from ..texts import shown
from .task import Task

Source: TypeAlias = "Select[Any] | Insert | Update | Delete"
ROWS_A_CALL = 1_000
"""Queue rows in one call of Procrastinate's function: an array of PostgreSQL's ends at 1 GB."""


class QueueRow(UserDefinedType[Any]):
    """Procrastinate's type of what its function takes."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "procrastinate_job_to_defer_v1"


def fan_out(task: Task, source: Source, batch: int) -> Any:
    """Return the statement that defers a call of *task* for each row of *source*.

    The columns are the arguments. Nothing but the count comes back to the client. The statement
    takes what all the queue rows have in common: ``queue``, ``task`` and ``origin``.
    """
    rows = _checked(task, source).cte("cronlock_source")
    item = func.to_jsonb(literal_column(rows.name)).label("item")
    number = func.row_number().over() - 1
    numbered = select(item, number.label("number")).select_from(rows).cte("cronlock_numbered")
    batches = _batches(numbered, batch).cte("cronlock_batches")
    calls = (
        select(
            func.procrastinate_defer_jobs_v1(func.array_agg(_row(batches.c.all))).label("ids"),
            func.sum(func.jsonb_array_length(batches.c.all)).label("items"),
        )
        .group_by(batches.c.number // literal_column(str(ROWS_A_CALL)))
        .cte("cronlock_calls")
    )
    # Naming the ids keeps the planner from leaving the calls out.
    return select(func.sum(calls.c["items"])).where(func.cardinality(calls.c.ids) > 0)


def _batches(numbered: Any, batch: int) -> Select[Any]:
    """Return the items of each queue row, as one JSON array, and its number."""
    if batch == 1:
        return select(func.jsonb_build_array(numbered.c.item).label("all"), numbered.c.number)
    number = (numbered.c.number // literal_column(str(batch))).label("number")
    return select(func.jsonb_agg(numbered.c.item).label("all"), number).group_by(number)


def _row(items: Any) -> Any:
    origin = cast(bindparam("origin", type_=Text), JSONB)
    arguments = func.jsonb_build_object("items", items, "origin", origin)
    queue, task = (cast(bindparam(name), Text) for name in ("queue", "task"))
    row = func.row(queue, task, 0, None, None, arguments, None)
    return cast(row, QueueRow)


def _checked(task: Task, source: Source) -> Source:
    """Return *source* if its columns are the arguments of *task*."""
    if not isinstance(source, (Select, Insert, Update, Delete)):
        raise DeferError(
            f"{shown(source)}: give a select(), or an update(), insert() or delete() with "
            "returning(), whose columns are the task's arguments"
        )
    columns = [str(column.key) for column in source.exported_columns]
    try:
        task.signature.bind(**dict.fromkeys(columns))
    except TypeError as error:
        cure = 'name the columns after the arguments, by label("user_id")'
        raise DeferError(f"task {task.name!r}: {error}: {cure}") from None
    return source
