"""Behind PgBouncer in transaction mode a worker looks; past it, it listens."""

from __future__ import annotations

import psycopg
import pytest

from ..support.clock_processes import TRACEBACK
from ..support.databases import Database
from ..support.pgbouncer import PgBouncer, pgbouncer_before
from ..support.queue_workers import QUICK, Workshop

HEARS_ONLY = {**QUICK, "connecting.LISTENING_POLL": 3600}
LEFT_BEHIND = """
SELECT ARRAY(SELECT pg_listening_channels()), ARRAY(SELECT statement FROM pg_prepared_statements),
       ARRAY(SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
"""
NAMES = [f"item-{number:02}" for number in range(40)]


@pytest.fixture
def workshop(database: Database) -> Workshop:
    made = Workshop(database)
    made.set_up()
    return made


def test_a_worker_behind_a_pooler_works_off_what_is_there_and_what_comes(
    workshop: Workshop, pgbouncer: PgBouncer
) -> None:
    """Each statement on any backend, many times the same: none of them is a prepared one."""
    workshop.defer("note", *NAMES[:30])
    with workshop.worker(url=pgbouncer.url(workshop.database)) as worker:
        workshop.wait_until_empty()
        workshop.defer("note", *NAMES[30:])
        workshop.wait_until_empty()
        assert worker.end() == 0
        said = worker.said()
    assert workshop.noted() == sorted(workshop.begun()) == NAMES
    assert "; polling each second.\n" in said
    assert "WARNING" not in said
    assert TRACEBACK not in said


def test_an_app_behind_a_pooler_has_a_worker_past_it_that_hears(
    workshop: Workshop, pgbouncer: PgBouncer
) -> None:
    pooled, direct = pgbouncer.url(workshop.database), workshop.database.url
    with workshop.worker(url=pooled, times=HEARS_ONLY, CRONLOCK_WORKER_URL=direct) as worker:
        workshop.defer_until_heard("item")
        assert worker.end() == 0
        assert "; direct, listening.\n" in worker.said()


def test_a_worker_whose_address_is_the_poolers_finds_out_that_it_hears_nothing(
    workshop: Workshop, pgbouncer: PgBouncer
) -> None:
    pooled = pgbouncer.url(workshop.database)
    with workshop.worker(url=pooled, times=HEARS_ONLY, CRONLOCK_WORKER_URL=pooled) as worker:
        workshop.defer("note", "first")
        workshop.wait_until_empty()
        workshop.defer("note", "second")
        workshop.wait_until_empty()
        assert worker.end() == 0
        said = worker.said()
    assert said.count("leads through a pooler, where nothing can listen") == 1
    assert "; polling each second.\n" in said


@pytest.mark.parametrize("name", ["DATABASE_URL", "CRONLOCK_WORKER_URL"])
def test_a_worker_leaves_nothing_behind_in_the_poolers_backend(
    workshop: Workshop, name: str
) -> None:
    """There is one, and the next client gets it as the last one left it."""
    with pgbouncer_before(workshop.database.server, default_pool_size=1) as pooler:
        pooled = pooler.url(workshop.database)
        workshop.defer("note", "first")
        with workshop.worker(**{name: pooled}) as worker:
            workshop.wait_until_empty()
            assert worker.end() == 0
        with psycopg.connect(pooled.replace("+psycopg", ""), autocommit=True) as next_client:
            assert next_client.execute(LEFT_BEHIND).fetchone() == ([], [], [])
    assert workshop.noted() == ["first"]
