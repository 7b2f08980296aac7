"""``flask cron list --orphans``: names in the tables that no job has or had."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from ..support.commands import cron, fails
from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database

RUNS = "cronlock_run"
MANY = 200_000
FILL = f"""
INSERT INTO cronlock_run (id, namespace, job, slot_key, scheduled_at, state, trigger, forced,
                          instance, app, started_at)
SELECT gen_random_uuid(), '', 'job-' || n % 50, n::text, 'epoch'::timestamptz + n * interval '1 s',
       'done', 'clock', false, 'i', 'a', now()
FROM generate_series(1, {MANY}) AS n
"""


def orphans(world: World) -> list[dict[str, Any]]:
    result = cron(world, "list", "--orphans", "--json")
    assert result.exit_code == 0, result.output
    records: list[dict[str, Any]] = json.loads(result.stdout)
    return records


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def test_a_job_that_was_renamed_leaves_an_orphan_until_it_is_given_its_old_name(
    make_world: Callable[..., World],
) -> None:
    old, renamed, cured = make_world(), make_world(), make_world()
    old.cron.job("digest", every=LONG)(old.mark)
    renamed.cron.job("daily-digest", every=LONG)(renamed.mark)
    cured.cron.job("daily-digest", every=LONG, previous_names=["digest"])(cured.mark)
    ran = old.run("digest")
    value_of(ran)

    [orphan] = orphans(renamed)

    assert (orphan["name"], orphan["runs"], orphan["failed"]) == ("digest", 1, 0)
    assert datetime.fromisoformat(orphan["newest_slot"]) == ran.slot
    heads, line, cure = cron(renamed, "list", "--orphans").stdout.splitlines()
    assert heads.split() == ["NAME", "RUNS", "FAILED", "NEWEST", "SLOT"]
    assert line.split()[:3] == ["digest", "1", "0"]
    assert "previous_names=" in cure
    for known in (old, cured):
        assert orphans(known) == []
        assert "registered job" in cron(known, "list", "--orphans").stdout


def test_a_name_is_found_in_any_of_the_tables(make_world: Callable[..., World]) -> None:
    past, now = make_world(), make_world()
    past.cron.job("failing")(lambda: 1 / 0)
    past.cron.job("unplanned")(lambda: None)
    error_of(past.run("failing"))
    value_of(past.run("unplanned"))
    past.database.query("INSERT INTO cronlock_job (namespace, job) VALUES ('', 'never-ran')")

    assert [tuple(orphan.values()) for orphan in orphans(now)] == [
        ("failing", 0, 1, None),
        ("never-ran", 0, 0, None),
        ("unplanned", 1, 0, None),
    ]


def test_another_namespace_is_not_looked_at(make_world: Callable[..., World]) -> None:
    staging, prod = make_world(CRONLOCK_NAMESPACE="staging"), make_world(CRONLOCK_NAMESPACE="prod")
    staging.cron.job("digest")(lambda: None)
    value_of(staging.run("digest"))

    assert orphans(prod) == []
    staging_without_jobs = make_world(CRONLOCK_NAMESPACE="staging")
    assert [orphan["name"] for orphan in orphans(staging_without_jobs)] == ["digest"]


def test_names_are_found_by_the_index_and_many_rows_are_not_counted(
    make_world: Callable[..., World], database: Database
) -> None:
    """On a table of any size: what is read grows with the names, not with the rows."""
    world = make_world()
    for number in range(49):
        world.cron.job(f"job-{number}")(lambda: None)
    database.query(FILL)
    database.query("VACUUM ANALYZE cronlock_run")
    asked: list[tuple[str, Any]] = []
    with world.app.app_context():

        @event.listens_for(world.db.engine, "before_cursor_execute")
        def note(_c: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
            asked.append((statement, values))

    found = cron(world, "list", "--orphans").stdout.splitlines()[1]

    assert found.split()[:4] == ["job-49", "over", "1000", "0"]
    [(statement, values)] = [(s, v) for s, v in asked if RUNS in s]
    with database.connect() as connection:
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
        plan = connection.execute(explain, values).fetchone()
    assert plan is not None
    top = plan[0][0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 2000
    scans = {node["Node Type"] for node in nodes(top) if node.get("Relation Name") == RUNS}
    assert scans
    assert "Seq Scan" not in scans
    assert orphans(world)[0]["newest_slot"] == (datetime.fromtimestamp(MANY - 1, UTC).isoformat())


def test_they_have_no_slots_to_come(make_world: Callable[..., World]) -> None:
    fails(cron(make_world(), "list", "--orphans", "--at", "2026-10-25T00:00Z"), 2, "leave out --at")


def test_without_tables_it_says_so_in_one_line(postgres: Server) -> None:
    with fresh_database(postgres) as database, bare_world(database) as bare:
        fails(cron(bare, "list", "--orphans"), 1, 'relation "cronlock_run" does not exist')
