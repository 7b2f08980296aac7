"""A fan-out in one statement: what a SELECT or a RETURNING gives is deferred by the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlalchemy import (
    CTE,
    Delete,
    Insert,
    Select,
    Text,
    Update,
    cast,
    func,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from ..exceptions import DeferError
from ..texts import shown
from .arguments import refuse_item
from .rows import defer_rows, queue_row
from .task import Task

Source: TypeAlias = "Select[Any] | Insert | Update | Delete"
ROWS_A_CALL, ITEMS_A_CALL = 1_000, 100_000
"""What one call of Procrastinate's function is given: an array of PostgreSQL's ends at 1 GB."""


def fan_out(task: Task, source: Source, batch: int, about: Mapping[str, str]) -> Any:
    """Return the statement that defers a call of *task* for each row of *source*.

    The columns are the arguments. Nothing but the count comes back to the client.

    :param about: what all the queue rows have in common: ``queue``, ``task`` and ``origin``.
    """
    rows = _checked(task, source)
    item = func.to_jsonb(literal_column(rows.name)).label("item")
    number = func.row_number().over() - 1
    numbered = select(item, number.label("number")).select_from(rows).cte("cronlock_numbered")
    batches = _batches(numbered, batch).cte("cronlock_batches")
    rows_a_call = max(1, min(ROWS_A_CALL, ITEMS_A_CALL // batch))
    calls = (
        select(
            defer_rows(_row(batches.c.all, about)).label("ids"),
            func.sum(func.jsonb_array_length(batches.c.all)).label("items"),
        )
        .group_by(batches.c.number // literal_column(str(rows_a_call)))
        .cte("cronlock_calls")
    )
    return select(func.sum(calls.c["items"]))


def _batches(numbered: Any, batch: int) -> Select[Any]:
    """Return the items of each queue row, as one JSON array, and its number."""
    if batch == 1:
        return select(func.jsonb_build_array(numbered.c.item).label("all"), numbered.c.number)
    number = (numbered.c.number // literal_column(str(batch))).label("number")
    return select(func.jsonb_agg(numbered.c.item).label("all"), number).group_by(number)


def _row(items: Any, about: Mapping[str, str]) -> Any:
    # Parameters with names would be taken for values of the source's own columns.
    queue, task, origin = (cast(literal(about[name]), Text) for name in ("queue", "task", "origin"))
    arguments = func.jsonb_build_object("items", items, "origin", cast(origin, JSONB))
    return queue_row(queue, task, arguments)


def _checked(task: Task, source: Source) -> CTE:
    """Return the rows of *source* if their columns are the arguments of *task*."""
    if not isinstance(source, (Select, Insert, Update, Delete)):
        raise DeferError(
            f"{shown(source)}: give a select(), or an update(), insert() or delete() with "
            "returning(), whose columns are the task's arguments"
        )
    rows = source.cte("cronlock_source")
    # As the server calls them: a column's key may be another one.
    columns = [str(column.name) for column in rows.c]
    try:
        task.signature.bind(**dict.fromkeys(columns))
    except TypeError as error:
        cure = 'name the columns after the arguments, by label("user_id")'
        raise DeferError(f"task {task.name!r}: {error}: {cure}") from None
    refuse_item(task, columns)
    return rows
