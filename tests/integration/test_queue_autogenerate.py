"""What Alembic's autogenerate makes of Procrastinate's tables, wherever it is used."""

from __future__ import annotations

import logging
from importlib import import_module, reload
from pathlib import Path
from textwrap import indent

import pytest
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.autogenerate.api import AutogenContext
from alembic.migration import MigrationContext
from alembic.operations.ops import DropIndexOp, DropTableOp, ModifyTableOps, UpgradeOps
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine

from flask_cronlock import CronLock

from ..support.databases import Database
from ..support.migrating import Migrations
from ..support.queue_schemas import (
    LATER,
    make_own_schema,
    queued,
    ship_later,
    without_queue,
)
from ..support.worlds import bare_world

hook = import_module("flask_cronlock.queue.migrations")

BRINGS_IN = "op.cronlock_queue_schema()"
ENV = """
import os
from alembic import context
from sqlalchemy import MetaData, create_engine

import flask_cronlock.queue.migrations

with create_engine(os.environ["DATABASE_URL"]).connect() as connection:
    context.configure(connection=connection, target_metadata=MetaData())
    with context.begin_transaction():
        context.run_migrations()
"""

__all__ = ["without_queue"]


def our_metadata(*tables: str) -> MetaData:
    """Return the metadata of an app with a CronLock, and with *tables* that it declares."""
    db = SQLAlchemy()
    CronLock(db)
    for name in tables:
        Table(name, db.metadata, Column("id", Integer, primary_key=True))
    return db.metadata


def written_by(
    url: str, metadata: MetaData, direction: str = "upgrade", include_schemas: bool = False
) -> str:
    """Return the lines that autogenerate writes."""
    opts = {"include_schemas": include_schemas}
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts=opts)
            operations = getattr(produce_migrations(context, metadata), f"{direction}_ops")
            return render_python_code(operations, migration_context=context)
    finally:
        engine.dispose()


def test_it_keeps_them_though_no_metadata_has_them(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    make_own_schema(database)
    database.query("CREATE TABLE unknown (id integer)")
    with caplog.at_level(logging.INFO):
        written = written_by(database.url, MetaData())
    assert "op.drop_table('unknown')" in written
    assert "procrastinate" not in written + caplog.text


def test_it_keeps_them_in_every_schema(database: Database) -> None:
    database.query("CREATE SCHEMA other")
    database.query(
        "ALTER ROLE CURRENT_USER IN DATABASE " + database.name + " SET search_path=other"
    )
    make_own_schema(database)
    database.query("ALTER ROLE CURRENT_USER IN DATABASE " + database.name + " RESET search_path")
    database.query("CREATE TABLE other.unknown (id integer)")
    written = written_by(database.url, MetaData(), include_schemas=True)
    assert "op.drop_table('unknown', schema='other')" in written
    assert "procrastinate" not in written


def test_an_alembic_that_looked_at_them_does_nothing_to_them() -> None:
    """Before 1.18 Alembic has compared the tables before anybody else is asked."""
    table, index = "procrastinate_jobs", "procrastinate_jobs_queue_name_idx_v1"
    other = DropTableOp("other")
    upgrade = UpgradeOps([ModifyTableOps(table, [DropIndexOp(index, table)]), DropTableOp(table)])
    upgrade.ops += [DropTableOp("cronlock_migration"), other]
    with create_engine("sqlite://").connect() as connection:
        context = AutogenContext(MigrationContext.configure(connection), MetaData())
        hook.look_after(context, upgrade, ())
    assert upgrade.ops == [other]


def test_they_are_brought_in_at_the_end_and_once_though_the_hook_is_there_twice(
    database: Database,
) -> None:
    reload(hook)
    written = written_by(database.url, our_metadata())
    assert written.count(BRINGS_IN) == 1
    assert written.index(BRINGS_IN) > written.index("create_table('cronlock_job'")


def test_a_later_release_of_procrastinate_gets_a_migration_of_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with bare_world(database) as world:
        world.create_tables()
    database.query("DROP TABLE mark, note")
    assert "op." not in written_by(database.url, our_metadata())

    ship_later(monkeypatch, tmp_path, "SELECT 1")
    assert written_by(database.url, our_metadata()).count("op.") == 1
    downgrade = written_by(database.url, our_metadata(), "downgrade")
    assert "jobs may be queued in them" in downgrade
    compile(f"def downgrade():\n{indent(downgrade, ' ')}", "script", "exec")

    database.query("INSERT INTO cronlock_migration VALUES (%s, now())", LATER)
    assert "op." not in written_by(database.url, our_metadata())


def test_a_database_of_another_bind_gets_none(database: Database) -> None:
    metadata = MetaData()
    Table("elsewhere", metadata, Column("id", Integer, primary_key=True))
    written = written_by(database.url, metadata)
    assert "elsewhere" in written
    assert BRINGS_IN not in written


def test_another_kind_of_database_gets_none(tmp_path: Path) -> None:
    metadata = our_metadata("account")
    url = f"sqlite:///{tmp_path / 'app.db'}"
    assert BRINGS_IN not in written_by(url, metadata)
    assert "create_table('account'" in written_by(url, metadata)


def test_models_of_them_are_for_reading(database: Database) -> None:
    metadata = our_metadata("procrastinate_jobs", "procrastinate_events")
    written = written_by(database.url, metadata)
    assert "procrastinate_jobs" not in written
    assert BRINGS_IN in written

    make_own_schema(database)
    assert "procrastinate_jobs" not in written_by(database.url, metadata)


@pytest.mark.usefixtures("without_queue")
def test_without_the_extra_models_of_them_are_the_app_s(database: Database) -> None:
    make_own_schema(database)
    metadata = our_metadata("procrastinate_own")
    Table("procrastinate_jobs", metadata, Column("extra", Text))
    written = written_by(database.url, metadata)
    assert "create_table('procrastinate_own'" in written
    assert "add_column('procrastinate_jobs', sa.Column('extra'" in written
    assert "procrastinate_events" not in written


def test_plain_alembic_keeps_them_where_env_py_imports_the_hook(
    database: Database, tmp_path: Path
) -> None:
    make_own_schema(database)
    folder = tmp_path / "migrations"
    alembic = Migrations(database, folder)
    alembic.run("alembic", "-c", str(tmp_path / "alembic.ini"), "init", str(folder))
    (folder / "env.py").write_text(ENV)
    command = ("alembic", "-c", str(tmp_path / "alembic.ini"))
    alembic.run(*command, "revision", "--autogenerate", "-m", "first")
    alembic.run(*command, "upgrade", "head")
    (script,) = alembic.scripts
    assert "procrastinate" not in script
    assert queued(database) == ["own"]
