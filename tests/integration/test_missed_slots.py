"""Slots that nobody ran: the run that wins records them, and one that names such a slot has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Ran, Reason, Run

from ..support.databases import Database
from ..support.history import EVERY, know, put, slot_at, states
from ..support.outcomes import error_of, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LONG_AGO = "36500d"


def add_digest(world: World, work: Callable[[], object] = lambda: None, **policy: Any) -> World:
    world.cron.job("digest", **({"every": EVERY} | policy))(lambda: work())
    return world


def test_the_run_that_wins_records_the_open_slots_since_the_last_that_ran(
    make_world: Callable[..., World], route: str, database: Database
) -> None:
    world = add_digest(make_world(url=route))
    put(database, [4])

    outcome = world.run("digest")

    assert isinstance(outcome, Ran)
    assert states(database) == {0: "done", 1: "missed", 2: "missed", 3: "missed", 4: "done"}
    rows = database.query(
        "SELECT instance, trigger, forced, app, value, finished_at, error FROM cronlock_run"
        " WHERE state = 'missed'"
    )
    assert rows == [(outcome.instance, "manual", False, "world", None, None, None)] * 3
    assert database.value("SELECT count(DISTINCT id) FROM cronlock_run") == 5
    assert reason_of(world.run("digest")) is Reason.ALREADY_RAN
    assert len(states(database)) == 5


def test_no_more_than_a_hundred_are_recorded(world: World, database: Database) -> None:
    add_digest(world)
    put(database, [150])

    value_of(world.run("digest"))

    missed = [number for number, state in states(database).items() if state == "missed"]
    assert missed == list(range(1, 101))


def test_of_a_job_that_is_seen_for_the_first_time_none_is_recorded(
    world: World, database: Database
) -> None:
    value_of(add_digest(world).run("digest"))
    assert states(database) == {0: "done"}


@pytest.mark.parametrize("column", ["known_since", "pruned_through"])
def test_none_is_recorded_from_before_the_job_was_known_or_its_history_pruned(
    world: World, database: Database, column: str
) -> None:
    add_digest(world)
    know(database, **{column: slot_at(database, 3)})

    value_of(world.run("digest"))

    assert states(database) == {0: "done", 1: "missed", 2: "missed"}


@pytest.mark.parametrize(("ran", "known"), [(3, 6), (6, 3)])
def test_the_last_that_ran_and_what_is_known_both_count(
    world: World, database: Database, ran: int, known: int
) -> None:
    add_digest(world)
    put(database, [ran])
    know(database, known_since=slot_at(database, known), pruned_through=slot_at(database, 9))

    value_of(world.run("digest"))

    assert states(database) == {0: "done", 1: "missed", 2: "missed", ran: "done"}


@pytest.mark.parametrize("state", ["broken", "missed", "running"])
def test_a_slot_that_has_a_row_keeps_it(world: World, database: Database, state: str) -> None:
    add_digest(world)
    put(database, [1], state)
    put(database, [3])

    value_of(world.run("digest"))

    assert states(database) == {0: "done", 1: state, 2: "missed", 3: "done"}
    assert database.value("SELECT count(*) FROM cronlock_run WHERE instance = 'the past'") == 2


@pytest.mark.parametrize("policy", [{"catch_up": "latest"}, {"catch_up": "none"}])
def test_a_slot_in_the_past_that_was_named_records_what_is_older(
    world: World, database: Database, policy: dict[str, str]
) -> None:
    add_digest(world, max_lateness=LONG_AGO, **policy)
    put(database, [4])

    value_of(world.run("digest", slot=slot_at(database, 2)))
    assert states(database) == {2: "done", 3: "missed", 4: "done"}

    value_of(world.run("digest"))
    assert states(database) == {0: "done", 1: "missed", 2: "done", 3: "missed", 4: "done"}


def test_where_all_are_caught_up_only_what_is_beyond_the_most_is_recorded(
    world: World, database: Database
) -> None:
    add_digest(world, catch_up="all", max_catch_up=3)
    put(database, [6])

    value_of(world.run("digest"))

    assert states(database) == {0: "done", 3: "missed", 4: "missed", 5: "missed", 6: "done"}
    assert reason_of(world.run("digest", slot=slot_at(database, 3))) is Reason.TOO_LATE
    for number in (2, 1):
        value_of(world.run("digest", slot=slot_at(database, number)))
    assert set(states(database).values()) == {"done", "missed"}
    assert len(states(database)) == 7


def test_a_slot_that_was_forced_alone_is_missed_and_its_time_is_the_next_runs(
    world: World, database: Database
) -> None:
    windows: list[Run] = []
    world.cron.job("digest", every=EVERY)(windows.append)
    put(database, [3])
    put(database, [1], slot_key=None, forced=True)

    value_of(world.run("digest"))

    assert windows[0].previous_slot == slot_at(database, 3)
    assert states(database) == {0: "done", 1: "missed", 2: "missed", 3: "done"}


def test_what_does_not_run_a_slot_records_nothing(world: World, database: Database) -> None:
    add_digest(world)
    world.cron.job("failing", every=EVERY)(lambda: 1 / 0)
    world.cron.job("plain")(lambda: None)
    for job in ("digest", "failing", "plain"):
        put(database, [5], job=job)

    value_of(world.run("digest", force=True))
    error_of(world.run("failing"))
    value_of(world.run("plain"))
    assert reason_of(world.run("digest", slot=slot_at(database, 2))) is Reason.TOO_LATE
    database.query("UPDATE cronlock_run SET scheduled_at = now() WHERE slot_key IS NULL")
    know(database, paused_at=slot_at(database, 0))
    assert reason_of(world.run("digest")) is Reason.PAUSED

    assert states(database) == states(database, "failing") == states(database, "plain")
    assert states(database) == {5: "done"}


def test_a_slot_that_was_missed_can_be_run_by_name_and_is_then_done(
    make_world: Callable[..., World], route: str, database: Database
) -> None:
    world = add_digest(make_world(url=route), work=lambda: "after all", max_lateness=LONG_AGO)
    put(database, [3])
    value_of(world.run("digest"))
    assert states(database)[1] == "missed"

    world.app.name = "another"
    outcome = world.run("digest", slot=slot_at(database, 1))

    assert isinstance(outcome, Ran)
    row = database.query(
        "SELECT id, state, instance, app, value, finished_at - started_at FROM cronlock_run"
        " WHERE scheduled_at = %s",
        slot_at(database, 1),
    )
    about = (outcome.run_id, "done", outcome.instance, "another", '"after all"', outcome.duration)
    assert row == [about]
    assert reason_of(world.run("digest", slot=slot_at(database, 1))) is Reason.ALREADY_RAN
    assert states(database) == {0: "done", 1: "done", 2: "missed", 3: "done"}


def test_a_run_that_fails_leaves_the_slot_missed(world: World, database: Database) -> None:
    add_digest(world, work=lambda: 1 / 0, max_lateness=LONG_AGO)
    put(database, [1], "missed")
    put(database, [2])
    before = database.query("SELECT * FROM cronlock_run ORDER BY scheduled_at")

    error_of(world.run("digest", slot=slot_at(database, 1)))

    assert database.query("SELECT * FROM cronlock_run ORDER BY scheduled_at") == before
    assert len(world.attempts()) == 1


def test_a_missed_slot_that_is_too_late_stays_so(world: World, database: Database) -> None:
    add_digest(world)
    put(database, [1], "missed")
    assert reason_of(world.run("digest", slot=slot_at(database, 1))) is Reason.TOO_LATE
    assert states(database) == {1: "missed"}


def test_the_job_waits_for_locks_as_its_role_does(world: World, database: Database) -> None:
    """The bound on the wait for others' claims ends with the recording."""

    def waits() -> Any:
        return world.db.session.scalar(text("SHOW lock_timeout"))

    add_digest(world, work=waits)
    put(database, [3])
    assert value_of(world.run("digest")) == database.value("SHOW lock_timeout")
    assert states(database)[1] == "missed"
