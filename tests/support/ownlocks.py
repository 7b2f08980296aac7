"""A database in which the function that tries a lock is the test's own.

A world that is made with :data:`LOOK_HERE_FIRST` finds it before PostgreSQL's.
"""

from __future__ import annotations

from .databases import Database

LOOK_HERE_FIRST = {"connect_args": {"options": "-c search_path=public,pg_catalog"}}
_FUNCTION = """
CREATE FUNCTION public.pg_try_advisory_xact_lock(key bigint) RETURNS boolean VOLATILE
LANGUAGE plpgsql AS $$ BEGIN
  {before}
  RETURN pg_catalog.pg_try_advisory_xact_lock(key);
END $$
"""
_WAIT = "WHILE EXISTS (SELECT FROM public.barrier) LOOP PERFORM pg_sleep(0.01); END LOOP;"


def make_slow(database: Database) -> None:
    """Let each try take up to 20 ms, so that those of several runs go by turns."""
    database.query(_FUNCTION.format(before="PERFORM pg_sleep(random() * 0.02);"))


def make_waiting(database: Database) -> None:
    """Let each try wait until :func:`let_go`, when its statement's snapshot has been taken."""
    database.query("CREATE TABLE public.barrier AS SELECT")
    database.query(_FUNCTION.format(before=_WAIT))


def one_waits(database: Database) -> bool:
    """Tell whether a try waits."""
    sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    return bool(database.query(f"{sleeping} AND datname = current_database()"))


def let_go(database: Database) -> None:
    database.query("DELETE FROM public.barrier")
