"""Alembic's autogenerate, taught of Procrastinate's tables; importing this module is enough.

They are in no metadata, so that Alembic would drop them. It leaves them alone instead, and where
they are missing or old the migration that it writes for our tables brings them up to date.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic.autogenerate import comparators, renderers
from alembic.autogenerate.api import AutogenContext
from alembic.operations import MigrateOperation, Operations
from alembic.operations.ops import UpgradeOps
from alembic.util import CommandError

from ..exceptions import ConfigError
from .extra import queue_is_installed, require_queue
from .schema import RECORD, bring_up_to_date, outstanding

logger = logging.getLogger("alembic.flask_cronlock")

FIRST: dict[str, Any] = {}
LAST: dict[str, Any] = {}
try:
    from alembic.util import DispatchPriority
except ImportError:  # before 1.18 they are called in the order of their registration
    pass
else:
    FIRST["priority"] = DispatchPriority.FIRST
    LAST["priority"] = DispatchPriority.LAST

STAYS = "# Procrastinate's tables stay: jobs may be queued in them."


@Operations.register_operation("cronlock_queue_schema")
class QueueSchemaOp(MigrateOperation):
    """Bring Procrastinate's tables up to date: ``op.cronlock_queue_schema()``."""

    table_name = "procrastinate_jobs"

    @classmethod
    def cronlock_queue_schema(cls, operations: Operations) -> None:
        """Create Procrastinate's tables, or bring them up to date."""
        operations.invoke(cls())

    def reverse(self) -> MigrateOperation:
        return QueueStaysOp()

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return ("cronlock_queue_schema",)


class QueueStaysOp(MigrateOperation):
    """What a downgrade does: nothing. The next upgrade finds the tables as they are."""

    table_name = "procrastinate_jobs"

    def reverse(self) -> MigrateOperation:
        return QueueSchemaOp()


@Operations.implementation_for(QueueSchemaOp)
def _bring_up_to_date(operations: Operations, _: QueueSchemaOp) -> None:
    if operations.migration_context.as_sql:
        raise CommandError(
            "what Procrastinate's tables need is asked of the database: upgrade without --sql"
        )
    with _errors_told():
        require_queue()
        logger.info("Procrastinate's tables: %s", bring_up_to_date(operations.get_bind()))


@renderers.dispatch_for(QueueSchemaOp)
def _render(context: AutogenContext, _: QueueSchemaOp) -> str:
    context.imports.add(f"import {__name__}  # noqa: F401")
    return "op.cronlock_queue_schema()"


@renderers.dispatch_for(QueueStaysOp)
def _render_reverse(_: AutogenContext, __: QueueStaysOp) -> list[str]:
    return [STAYS, "pass"]


@comparators.dispatch_for("schema", **FIRST)
def hide(context: AutogenContext, _: UpgradeOps, __: Any) -> None:
    """Keep Alembic from looking at the tables, and from telling that they are removed."""
    asked = context.run_name_filters

    def filtered(name: Any, type_: Any, parent_names: Any) -> bool:
        is_hidden = type_ == "table" and _is_left_alone(context, name)
        return not is_hidden and asked(name, type_, parent_names)

    context.run_name_filters = filtered  # type: ignore[method-assign]


@comparators.dispatch_for("schema", **LAST)
def look_after(context: AutogenContext, upgrade: UpgradeOps, _: Any) -> None:
    """Take out what Alembic would do to the tables, and put in what they need."""
    upgrade.ops[:] = [
        op for op in upgrade.ops if not _is_left_alone(context, getattr(op, "table_name", None))
    ]
    if queue_is_installed() and _is_ours(context) and context.connection is not None:
        with _errors_told():
            if outstanding(context.connection):
                upgrade.ops.append(QueueSchemaOp())


def _is_left_alone(context: AutogenContext, name: str | None) -> bool:
    """Tell whether the table is Procrastinate's, or the record of its migrations.

    Without the extra a table that the app itself declares is the app's.
    """
    if name is None or not (name.startswith("procrastinate_") or name == RECORD.name):
        return False
    return queue_is_installed() or all(table.name != name for table in context.sorted_tables)


def _is_ours(context: AutogenContext) -> bool:
    """Tell whether these are the database and the metadata that our tables are in."""
    names = {table.name for table in context.sorted_tables}
    return context.dialect.name == "postgresql" and "cronlock_run" in names


@contextmanager
def _errors_told() -> Iterator[None]:
    """Raise our errors as one of Alembic's, which its commands tell in one line."""
    try:
        yield
    except ConfigError as error:
        raise CommandError(str(error)) from error
