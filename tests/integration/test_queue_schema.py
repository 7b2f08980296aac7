"""``flask cron init-db`` brings Procrastinate's tables in: created, upgraded, or taken over."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import MetaData

from ..support.commands import cron, fails, stranger_to
from ..support.databases import Database
from ..support.queue_schemas import (
    DEFER,
    DEFER_IN_3_1,
    LATER,
    RECORD,
    SHIPPED,
    apply_migrations,
    make_old_schema,
    make_own_schema,
    queued,
    recorded,
    ship_later,
    tables,
    without_queue,
)
from ..support.worlds import bare_world

LATER_FUNCTION = """
CREATE FUNCTION procrastinate_later_v1(number integer) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN RAISE NOTICE 'at %', number; RETURN number % 2 || ':%s'; END; $$;
"""

__all__ = ["without_queue"]


def init_db(database: Database, **how: object) -> str:
    """Run ``init-db`` and return what it says of Procrastinate's tables."""
    with bare_world(database, **how) as world:
        result = cron(world, "init-db")
    assert result.exit_code == 0, result.output
    said = [line for line in result.stdout.splitlines() if line.startswith("Procrastinate")]
    return "".join(said)


def test_they_are_created_once(database: Database) -> None:
    assert init_db(database) == "Procrastinate's tables: created."
    assert recorded(database) == SHIPPED
    database.query(DEFER, "digest")

    assert init_db(database) == "Procrastinate's tables: up to date."
    assert queued(database) == ["digest"]


def test_those_of_an_older_release_are_upgraded_with_the_jobs_in_them(database: Database) -> None:
    make_old_schema(database, before="03.02", recorded=True)
    database.query(DEFER_IN_3_1, "old")
    count = len([name for name in SHIPPED if name > "03.02"])

    assert init_db(database) == f"Procrastinate's tables: {count} migrations applied."

    database.query(DEFER, "new")
    assert queued(database) == ["old", "new"]
    assert database.value("SELECT to_regproc('procrastinate_retry_job_v2')")
    assert recorded(database) == SHIPPED
    assert init_db(database) == "Procrastinate's tables: up to date."


def test_those_that_the_app_made_itself_are_taken_over(database: Database) -> None:
    make_own_schema(database)
    assert init_db(database) == "Procrastinate's tables: taken over."
    assert init_db(database) == "Procrastinate's tables: up to date."
    assert queued(database) == ["own"]
    assert recorded(database) == SHIPPED


def test_those_that_all_migrations_made_are_taken_over(database: Database) -> None:
    make_old_schema(database, before="99")
    assert init_db(database) == "Procrastinate's tables: taken over."


@pytest.mark.parametrize("before", ["03.02", "03.04.00_50"])
def test_those_of_an_unknown_older_release_are_refused_and_nothing_is_changed(
    database: Database, before: str
) -> None:
    make_old_schema(database, before)
    with bare_world(database) as world:
        fails(cron(world, "init-db"), 1, "apply its own migrations up to 03.04.00_50")
    assert tables(database, "cronlock_") == []

    apply_migrations(database, [name for name in SHIPPED if name >= before])
    assert init_db(database) == "Procrastinate's tables: taken over."


@pytest.mark.parametrize("own", [False, True])
def test_a_later_release_s_migration_is_applied_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: bool
) -> None:
    if own:
        make_own_schema(database)
    else:
        init_db(database)
    ship_later(monkeypatch, tmp_path, LATER_FUNCTION)

    said = init_db(database)
    assert said == f"Procrastinate's tables: {'taken over, ' if own else ''}1 migration applied."
    assert database.value("SELECT procrastinate_later_v1(3)") == "1:%s"
    assert recorded(database) == [*SHIPPED, LATER]
    assert init_db(database) == "Procrastinate's tables: up to date."


def test_a_migration_that_does_not_fit_is_named_and_nothing_is_changed(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_own_schema(database)
    ship_later(monkeypatch, tmp_path, f"{LATER_FUNCTION}; DROP FUNCTION procrastinate_lost()")
    with bare_world(database) as world:
        result = cron(world, "init-db")
    fails(result, 1, f"{LATER} does not fit what is in the database")
    assert "procrastinate_lost() does not exist" in result.stderr
    assert tables(database, "cronlock_") == []
    assert database.value("SELECT to_regproc('procrastinate_later_v1')") is None


def test_what_is_left_of_dropped_tables_is_not_taken_for_them(database: Database) -> None:
    init_db(database)
    database.query("DROP TABLE procrastinate_jobs CASCADE")
    with bare_world(database) as world:
        fails(cron(world, "init-db"), 1, "schema does not fit what is in the database")


def test_a_record_that_outlived_them_is_written_anew(database: Database) -> None:
    database.query(RECORD)
    database.query("INSERT INTO cronlock_migration VALUES (%s, now())", SHIPPED[0])
    assert init_db(database) == "Procrastinate's tables: created."
    assert recorded(database) == SHIPPED


def test_a_role_that_does_not_own_them_is_told_to_run_it_as_one_that_does(
    database: Database,
) -> None:
    make_old_schema(database, before="03.04", recorded=True)
    database.query("GRANT CREATE ON SCHEMA public TO PUBLIC")
    database.query("GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC")
    with stranger_to(database) as url, bare_world(database, url=url) as world:
        result = cron(world, "init-db")
    fails(result, 1, "as a role that may make the tables")
    assert "must be owner of" in result.stderr


def test_they_are_where_the_search_path_of_the_app_leads(database: Database) -> None:
    database.query("CREATE SCHEMA ours")
    database.query("CREATE SCHEMA theirs")
    how = {
        "db": SQLAlchemy(metadata=MetaData(schema="ours")),
        "engine_options": {"connect_args": {"options": "-c search_path=theirs,public"}},
    }
    with bare_world(database, **how) as world:
        for said in ("created", "up to date"):
            result = cron(world, "init-db")
            assert f"Procrastinate's tables: {said}." in result.stdout, result.output
    placed = dict(database.query("SELECT tablename, schemaname FROM pg_tables"))
    assert placed["cronlock_run"] == "ours"
    assert placed["procrastinate_jobs"] == placed["cronlock_migration"] == "theirs"


@pytest.mark.usefixtures("without_queue")
def test_without_the_extra_nothing_is_made_and_nothing_said(database: Database) -> None:
    assert init_db(database) == ""
    assert "cronlock_run" in tables(database)
    assert tables(database, "procrastinate_") == []
    assert "cronlock_migration" not in tables(database)
