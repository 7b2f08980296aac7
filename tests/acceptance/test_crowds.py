"""Many processes want the same run: one gets it, whatever their timing and their clocks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from ..support.crowds import race
from ..support.databases import Database
from ..support.worlds import World


def words(outcomes: list[dict[str, object]]) -> Counter[object]:
    return Counter(outcome["word"] for outcome in outcomes)


def test_processes_that_come_20_ms_apart_run_each_of_100_slots_once(
    database: Database, world: World
) -> None:
    """The body is over at once, so a later process meets a free lock: the claim has to stop it."""
    now = datetime.now(UTC).replace(microsecond=0)
    slots = [now - timedelta(seconds=300 - number) for number in range(100)]
    outcomes = race(database, "quick", 4, slots=slots, stagger=0.02)

    runs_of = Counter(outcome["slot"] for outcome in outcomes if outcome["word"] == "ran")
    assert runs_of == {slot.isoformat(): 1 for slot in slots}
    assert words(outcomes) == {"ran": 100, "already ran": 300}
    assert world.marks == 100
    assert database.advisory_locks() == 0


@pytest.mark.parametrize("route", ["pgbouncer"], indirect=True)
def test_no_update_of_an_unprotected_counter_is_lost(
    database: Database, world: World, route: str
) -> None:
    database.query("CREATE TABLE counter (n int)")
    database.query("INSERT INTO counter VALUES (0)")
    outcomes = race(database, "count-up", 4, rounds=30, url=route)

    assert set(words(outcomes)) == {"ran", "already running"}
    assert database.value("SELECT n FROM counter") == words(outcomes)["ran"]


def test_the_databases_clock_decides_where_the_hosts_clocks_are_wrong(
    database: Database, world: World
) -> None:
    """Half the processes are 36 hours ahead, half 36 hours behind."""
    skews = [36 * 3600.0, -36 * 3600.0]
    today = "SELECT date_trunc('day', clock_timestamp() + interval '5 s', 'UTC')"
    before = database.value(today)
    outcomes = race(database, "daily", 4, rounds=5, skews=skews)
    days = {before, database.value(today)}

    slots = {datetime.fromisoformat(str(outcome["slot"])) for outcome in outcomes}
    assert slots <= days
    assert words(outcomes)["ran"] == world.marks == len(slots)
    told = [datetime.fromisoformat(str(o["value"])) for o in outcomes if o["value"]]
    assert all(abs(clock - datetime.now(UTC)) > timedelta(hours=30) for clock in told)
    rows = database.query("SELECT started_at, finished_at FROM cronlock_run")
    stamps = [stamp for row in rows for stamp in row]
    assert all(abs(stamp - datetime.now(UTC)) < timedelta(hours=1) for stamp in stamps)
