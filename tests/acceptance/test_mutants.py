"""The tests' own harness: it must see what happens when a central mechanism is taken out."""

from __future__ import annotations

from collections import Counter

import pytest

from ..support.crowds import race
from ..support.databases import Database
from ..support.worlds import World

BOTH = "lock,claim"


def most_at_once(database: Database) -> int:
    """Return how many bodies were at work at the same time, at most."""
    rows = database.query("SELECT job LIKE 'begin%%' FROM mark ORDER BY at")
    at_work = most = 0
    for (begins,) in rows:
        at_work += 1 if begins else -1
        most = max(most, at_work)
    return most


def ran(outcomes: list[dict[str, object]]) -> int:
    return Counter(outcome["word"] for outcome in outcomes)["ran"]


@pytest.mark.parametrize(("mutants", "overlap"), [("claim", False), ("lock", True)])
def test_bodies_overlap_only_without_the_lock(
    database: Database, world: World, mutants: str, overlap: bool
) -> None:
    race(database, "meeting", 4, mutants=mutants)
    assert (most_at_once(database) > 1) is overlap
    assert (world.marks > 2) is overlap


@pytest.mark.parametrize(("mutants", "times"), [("", 1), ("lock", 1), ("claim", 2)])
def test_a_late_duplicate_runs_only_without_the_claim(
    database: Database, world: World, mutants: str, times: int
) -> None:
    assert ran(race(database, "daily", 1, rounds=2, mutants=mutants)) == times
    assert world.marks == times


@pytest.mark.parametrize(("mutants", "times"), [("lock", 1), (BOTH, 20)])
def test_twenty_hits_all_run_only_without_both(
    database: Database, world: World, mutants: str, times: int
) -> None:
    assert ran(race(database, "daily", 4, rounds=5, mutants=mutants)) == times
    assert world.marks == times


def test_a_counter_loses_updates_without_the_lock(database: Database, world: World) -> None:
    database.query("CREATE TABLE counter (n int)")
    database.query("INSERT INTO counter VALUES (0)")
    outcomes = race(database, "count-up", 3, rounds=10, mutants="lock")
    assert database.value("SELECT n FROM counter") < ran(outcomes)
