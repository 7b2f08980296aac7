"""Procrastinate's tables in the app's database: created, upgraded, or taken over.

Its upgrades are SQL files, and nothing in its own tables tells which of them were applied; the
table ``cronlock_migration`` does. All its names are written without a schema, so its tables are
where the ``search_path`` of the app's connections leads, and the record is beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, Table, Text, func, inspect, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import ProgrammingError

from ..exceptions import ConfigError
from ..sqlerrors import sqlstate
from ..tables import Stamp

RECORD = Table(
    "cronlock_migration",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("applied_at", Stamp, nullable=False, default=func.now()),
)
THERE = text("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
# What the last migration of 3.4 wrote; they are applied in order.
OF_3_4 = text("""
SELECT EXISTS (SELECT FROM pg_proc
WHERE oid = to_regproc('procrastinate_trigger_function_status_events_update_v1')
  AND strpos(prosrc, 'retried') > 0)
""")
AFTER_3_4 = "03.05"
NOT_PERMITTED = "42501"


@dataclass(frozen=True, slots=True)
class Change:
    """What brings Procrastinate's tables up to date; false where they are."""

    creates: bool = False
    applied: tuple[str, ...] = ()
    """Migrations to be run."""
    recorded: tuple[str, ...] = ()
    """Migrations that are in the tables already, but not in the record."""

    def __bool__(self) -> bool:
        return self.creates or bool(self.applied or self.recorded)

    def __str__(self) -> str:
        if self.creates:
            return "created"
        done = ["taken over"] if self.recorded else []
        if count := len(self.applied):
            done.append(f"{count} migration{'' if count == 1 else 's'} applied")
        return ", ".join(done) or "up to date"


def bring_up_to_date(connection: Connection) -> Change:
    """Create, upgrade or take over the tables in the caller's transaction; return what was done.

    :raises ConfigError: where what is there cannot be taken over or upgraded.
    """
    from procrastinate.schema import SchemaManager

    change = outstanding(connection)
    if not change:
        return change
    RECORD.create(connection, checkfirst=True)
    if change.creates:
        _execute(connection, "schema", SchemaManager.get_schema())
    for name in change.applied:
        _execute(connection, name, _shipped()[name].read_text(encoding="utf-8"))
    names = [{"name": name} for name in (*change.recorded, *change.applied)]
    connection.execute(insert(RECORD).on_conflict_do_nothing(), names)
    return change


def outstanding(connection: Connection) -> Change:
    """Return what :func:`bring_up_to_date` would do; nothing is written."""
    shipped = sorted(_shipped())
    if not connection.scalar(THERE):
        return Change(creates=True, recorded=tuple(shipped))
    if known := _recorded(connection):
        return Change(applied=tuple(name for name in shipped if name not in known))
    if not connection.scalar(OF_3_4):
        raise ConfigError(
            "Procrastinate's tables were made by a release before 3.4, or not to the end: apply "
            "its own migrations up to 03.04.00_50, and do this again"
        )
    return Change(
        applied=tuple(name for name in shipped if name >= AFTER_3_4),
        recorded=tuple(name for name in shipped if name < AFTER_3_4),
    )


def _shipped() -> dict[str, Path]:
    """Return the migrations that the installed Procrastinate has, by their names."""
    from procrastinate.schema import SchemaManager

    return {path.name: path for path in Path(SchemaManager.get_migrations_path()).glob("*.sql")}


def _recorded(connection: Connection) -> set[str]:
    """Return the names of the migrations that the record tells of."""
    if not inspect(connection).has_table(RECORD.name):
        return set()
    return set(connection.scalars(select(RECORD.c.name)))


def _execute(connection: Connection, name: str, statements: str) -> None:
    """Execute a file of Procrastinate's as it is: without parameters ``%`` has no meaning."""
    try:
        connection.exec_driver_sql(statements, execution_options={"no_parameters": True})
    except ProgrammingError as error:
        if sqlstate(error) == NOT_PERMITTED:
            raise
        raise ConfigError(
            f"Procrastinate's {name} does not fit what is in the database; nothing was changed"
        ) from error
