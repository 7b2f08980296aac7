"""Two releases with two lock keys run two slots of a job at once: what is missed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from flask_cronlock import Outcome, Ran, Reason, Run

from ..support.bodies import Gate, running
from ..support.databases import Database, fresh_database
from ..support.history import EVERY, put, slot_at, states
from ..support.outcomes import reason_of, value_of
from ..support.ownlocks import LOOK_HERE_FIRST, let_go, make_waiting, one_waits
from ..support.processes import wait_until
from ..support.worlds import World, world_on

pytestmark = pytest.mark.shared_database

LONG_AGO = "36500d"


@contextmanager
def holding(world: World, slot: datetime, gate: Gate) -> Iterator[Future[Outcome]]:
    """Run the digest of *slot*, whose body holds at *gate*, for as long as the block takes."""
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(world.run, "digest", slot=slot)
        try:
            assert gate.entered.wait(60), outcome
            yield outcome
        finally:
            gate.open()


def add_digest(world: World, work: Callable[[], object] = lambda: None, **policy: Any) -> World:
    world.cron.job("digest", **({"every": EVERY} | policy))(lambda: work())
    return world


@pytest.mark.parametrize("timeout", ["60s", "3s"])
def test_an_older_slot_that_runs_under_another_key_is_not_recorded_and_not_waited_for(
    make_world: Callable[..., World],
    database: Database,
    gate: Gate,
    another_release: Callable[[], None],
    timeout: str,
) -> None:
    old, new = make_world(), make_world()
    add_digest(old, work=gate.hold, max_lateness=LONG_AGO)
    add_digest(new, timeout=timeout)
    put(database, [3])
    with holding(old, slot_at(database, 1), gate) as older:
        another_release()
        assert reason_of(new.run("digest")) is Reason.ALREADY_RUNNING
        assert not older.done()
        assert states(database) == {3: "done"}
    value_of(older.result())
    assert states(database) == {1: "done", 2: "missed", 3: "done"}

    value_of(new.run("digest"))
    assert states(database) == {0: "done", 1: "done", 2: "missed", 3: "done"}
    assert new.attempts() == []


def test_a_slot_that_a_run_under_another_key_is_recording_is_not_waited_for(
    make_world: Callable[..., World],
    database: Database,
    gate: Gate,
    another_release: Callable[[], None],
) -> None:
    old, new = make_world(), make_world()
    add_digest(old, work=gate.hold)
    add_digest(new, max_lateness=LONG_AGO)
    put(database, [3])
    with running(old, "digest", gate) as newer:
        another_release()
        named = new.run("digest", slot=slot_at(database, 1))
        assert reason_of(named) is Reason.ALREADY_RUNNING
        assert not newer.done()
    value_of(newer.result())
    assert states(database)[1] == "missed"

    value_of(new.run("digest", slot=slot_at(database, 1)))
    assert states(database) == {0: "done", 1: "done", 2: "missed", 3: "done"}


def test_two_that_record_the_same_slots_under_two_keys_both_run(
    make_world: Callable[..., World],
    database: Database,
    gate: Gate,
    another_release: Callable[[], None],
) -> None:
    """The newer one waits for the older, a little; had it waited too long, it would ask again."""
    old, new = make_world(), make_world()
    add_digest(old, work=gate.hold, max_lateness=LONG_AGO)
    add_digest(new)
    put(database, [5])
    with ThreadPoolExecutor(1) as pool, holding(old, slot_at(database, 1), gate) as older:
        another_release()
        waiting = pool.submit(new.run, "digest")
        wait_until(
            lambda: (
                database.value("SELECT count(*) FROM pg_locks WHERE NOT granted") or waiting.done()
            )
        )
        gate.open()
        value_of(older.result())
        newer = waiting.result()
    if not isinstance(newer, Ran):
        assert reason_of(newer) is Reason.ALREADY_RUNNING
        value_of(new.run("digest"))
    assert list(states(database).values()) == ["done", "done", *["missed"] * 3, "done"]
    assert new.attempts() == old.attempts() == []


def test_what_ran_while_the_lock_was_asked_for_is_neither_missed_nor_handed_out_again(
    postgres: Any, gate: Gate
) -> None:
    """The statement that gets the lock began before the last run's commit, and sees none of it."""
    with (
        fresh_database(postgres) as database,
        world_on(database) as old,
        world_on(database, engine_options=LOOK_HERE_FIRST) as new,
        ThreadPoolExecutor(1) as pool,
    ):
        windows: list[Run] = []
        add_digest(old, work=gate.hold, max_lateness=LONG_AGO)
        new.cron.job("digest", every=EVERY)(windows.append)
        put(database, [4])
        with holding(old, slot_at(database, 1), gate) as older:
            make_waiting(database)
            newer = pool.submit(new.run, "digest")
            wait_until(lambda: one_waits(database))
            gate.open()
            value_of(older.result())
            let_go(database)
            value_of(newer.result())

        assert windows[0].previous_slot == slot_at(database, 1)
        assert states(database) == {0: "done", 1: "done", 2: "missed", 3: "missed", 4: "done"}
