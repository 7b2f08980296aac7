"""Procrastinate's schema as older and newer releases of it, and the app's own use, left it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from procrastinate.schema import SchemaManager

from flask_cronlock.queue.extra import queue_is_installed

from .databases import Database

SHIPPED = sorted(path.name for path in Path(SchemaManager.get_migrations_path()).glob("*.sql"))
DEFER = """
SELECT procrastinate_defer_jobs_v1(ARRAY[
    ROW('mail', %s, 0, NULL, NULL, '{}', NULL)::procrastinate_job_to_defer_v1])
"""
DEFER_IN_3_1 = "SELECT procrastinate_defer_job_v1('mail', %s, 0, NULL, NULL, '{}', NULL)"
RECORD = "CREATE TABLE cronlock_migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL)"
LATER = "03.99.00_01_pre_later.sql"


def make_own_schema(database: Database, schema: str = "public") -> None:
    """Make the tables as ``procrastinate schema --apply`` does, with a job that is queued."""
    with database.connect(options=f"-c search_path={schema}") as connection:
        connection.execute(SchemaManager.get_schema())
        connection.execute(DEFER, ["own"])


def make_old_schema(database: Database, before: str, recorded: bool = False) -> None:
    """Apply the migrations that come before *before*."""
    names = [name for name in SHIPPED if name < before]
    apply_migrations(database, names)
    if recorded:
        database.query(RECORD)
        database.query("INSERT INTO cronlock_migration SELECT unnest(%s::text[]), now()", names)


def apply_migrations(database: Database, names: list[str]) -> None:
    """Apply Procrastinate's own files one by one, as its users do."""
    for name in names:
        database.query((Path(SchemaManager.get_migrations_path()) / name).read_text())


def queued(database: Database) -> list[Any]:
    """Return the tasks that are queued, and not worked off."""
    rows = database.query("SELECT task_name FROM procrastinate_jobs WHERE status = 'todo'")
    return [name for (name,) in rows]


def recorded(database: Database) -> list[str]:
    return [name for (name,) in database.query("SELECT name FROM cronlock_migration ORDER BY 1")]


def tables(database: Database, like: str = "") -> list[str]:
    """Return the tables, in all of the user's schemas, whose names begin with *like*."""
    found = database.query(
        "SELECT tablename FROM pg_tables WHERE starts_with(tablename, %s)"
        " AND schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
        like,
    )
    return [name for (name,) in found]


def ship_later(monkeypatch: pytest.MonkeyPatch, folder: Path, statements: str) -> None:
    """Install a Procrastinate that ships one more migration."""
    shutil.copytree(SchemaManager.get_migrations_path(), folder, dirs_exist_ok=True)
    (folder / LATER).write_text(statements)
    monkeypatch.setattr(SchemaManager, "get_migrations_path", staticmethod(lambda: str(folder)))


@pytest.fixture
def without_queue(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hide Procrastinate, as where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "procrastinate", None)
    queue_is_installed.cache_clear()
    yield
    monkeypatch.undo()
    queue_is_installed.cache_clear()
