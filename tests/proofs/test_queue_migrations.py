"""Flask-Migrate: ``flask db migrate`` and ``upgrade`` bring Procrastinate's tables in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.databases import Database
from ..support.migrating import Migrations
from ..support.queue_schemas import (
    DEFER,
    DEFER_IN_3_1,
    SHIPPED,
    make_old_schema,
    make_own_schema,
    queued,
    recorded,
    tables,
)

BRINGS_IN = "op.cronlock_queue_schema()"
NO_CHANGES = "No changes in schema detected"


@pytest.fixture
def migrations(database: Database, tmp_path: Path) -> Migrations:
    found = Migrations(database, tmp_path / "migrations")
    found.flask("db", "init")
    return found


def stays_as_it_is(migrations: Migrations) -> None:
    """Check that autogenerate finds nothing, and speaks of nothing, and that jobs are taken."""
    written = len(migrations.scripts)
    said = migrations.flask("db", "migrate")
    assert NO_CHANGES in said
    assert "procrastinate" not in said
    assert len(migrations.scripts) == written
    migrations.flask("db", "check")
    migrations.database.query(DEFER, "deferred")
    assert queued(migrations.database)[-1] == "deferred"
    assert recorded(migrations.database) == SHIPPED


def test_one_migration_brings_in_our_tables_and_procrastinate_s(migrations: Migrations) -> None:
    assert "cronlock_queue_schema" in migrations.flask("db", "check", code=1)
    migrations.flask("db", "migrate")
    (script,) = migrations.scripts
    assert all(f"create_table('{name}'" in script for name in ("account", "cronlock_run"))
    assert script.count(BRINGS_IN) == 1
    assert "import flask_cronlock.queue.migrations" in script
    assert tables(migrations.database, "procrastinate_") == []

    said = migrations.flask("db", "upgrade")

    assert "Procrastinate's tables: created" in said
    stays_as_it_is(migrations)


def test_a_downgrade_keeps_what_is_queued_and_the_next_upgrade_finds_it(
    migrations: Migrations,
) -> None:
    migrations.flask("db", "migrate")
    migrations.flask("db", "upgrade")
    migrations.database.query(DEFER, "digest")

    migrations.flask("db", "downgrade", "base")

    assert tables(migrations.database, "cronlock_") == ["cronlock_migration"]
    assert queued(migrations.database) == ["digest"]
    assert "up to date" in migrations.flask("db", "upgrade")
    assert queued(migrations.database) == ["digest"]
    stays_as_it_is(migrations)


def test_where_init_db_was_at_work_nothing_is_left_to_do(migrations: Migrations) -> None:
    migrations.flask("cron", "init-db")
    migrations.flask("db", "migrate")
    (script,) = migrations.scripts
    assert "create_table('account'" in script
    assert "cronlock" not in script
    assert "procrastinate" not in script
    migrations.flask("db", "upgrade")
    stays_as_it_is(migrations)


def test_tables_that_the_app_made_itself_are_taken_over(migrations: Migrations) -> None:
    make_own_schema(migrations.database)
    migrations.flask("db", "migrate")
    (script,) = migrations.scripts
    assert "procrastinate_" not in script
    assert "Procrastinate's tables: taken over" in migrations.flask("db", "upgrade")
    assert queued(migrations.database) == ["own"]
    stays_as_it_is(migrations)


def test_tables_of_an_older_release_are_upgraded_with_the_jobs_in_them(
    migrations: Migrations,
) -> None:
    make_old_schema(migrations.database, before="03.02", recorded=True)
    migrations.database.query(DEFER_IN_3_1, "old")
    migrations.flask("db", "migrate")
    assert "migrations applied" in migrations.flask("db", "upgrade")
    assert queued(migrations.database) == ["old"]
    stays_as_it_is(migrations)


def test_tables_of_an_unknown_older_release_stop_it_with_the_cure(migrations: Migrations) -> None:
    make_old_schema(migrations.database, before="03.04")
    said = migrations.flask("db", "migrate", code=1)
    assert "apply its own migrations up to 03.04.00_50" in said
    assert "Traceback" not in said
    assert migrations.scripts == []


def test_without_the_extra_others_tables_are_kept_and_none_is_made(migrations: Migrations) -> None:
    make_own_schema(migrations.database)
    migrations.extra["WITHOUT_QUEUE"] = "1"
    migrations.flask("db", "migrate")
    (script,) = migrations.scripts
    assert "cronlock_run" in script
    assert BRINGS_IN not in script
    assert "procrastinate" not in script
    migrations.flask("db", "upgrade")
    assert NO_CHANGES in migrations.flask("db", "migrate")
    assert queued(migrations.database) == ["own"]


def test_a_migration_that_needs_the_extra_says_so(migrations: Migrations) -> None:
    migrations.flask("db", "migrate")
    migrations.extra["WITHOUT_QUEUE"] = "1"
    said = migrations.flask("db", "upgrade", code=1)
    assert "pip install 'Flask-CronLock[queue]'" in said
    assert "Traceback" not in said
    assert tables(migrations.database, "cronlock_") == []


def test_sql_for_later_is_refused_since_it_could_not_look(migrations: Migrations) -> None:
    migrations.flask("db", "migrate")
    said = migrations.flask("db", "upgrade", "--sql", code=1)
    assert "upgrade without --sql" in said
    assert "Traceback" not in said
