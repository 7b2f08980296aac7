"""A job that was given another name is the same job."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flask_cronlock import Ran, Reason, Run
from flask_cronlock.exceptions import JobTimeout, RegistrationError

from ..support.bodies import Gate, running
from ..support.commands import cron
from ..support.databases import ADVISORY_LOCKS, Database
from ..support.history import EVERY, know, put, slot_at, states
from ..support.holders import escaped, free
from ..support.instances import at_once
from ..support.outcomes import elsewhere, error_of, reason_of, value_of
from ..support.ownlocks import LOOK_HERE_FIRST, let_go, make_slow, make_waiting, one_waits
from ..support.processes import wait_until
from ..support.sites import BRISK
from ..support.worlds import World

TWICE = ["digest", "mail-digest"]
"""What the job was called before, oldest first."""


def release(
    world: World, name: str, before: list[str], work: Callable[[], object] | None = None, **how: Any
) -> World:
    """Register the job of a release that knows the names *before*."""
    work = work or world.mark
    world.cron.job(name, **({"every": EVERY, "previous_names": before} | how))(lambda: work())
    return world


RELEASES = [("digest", []), ("mail-digest", TWICE[:1]), ("daily-digest", TWICE)]
PAIRS = [(RELEASES[a], RELEASES[b]) for a in range(3) for b in range(3) if a != b]
each_pair = pytest.mark.parametrize(
    ("one", "other"), PAIRS, ids=[f"{one[0]}, {other[0]}" for one, other in PAIRS]
)
Release = tuple[str, list[str]]


@each_pair
def test_a_slot_that_ran_in_one_release_has_run_for_every_other(
    make_world: Callable[..., World], one: Release, other: Release
) -> None:
    first, second = release(make_world(), *one), release(make_world(), *other)

    value_of(first.run(one[0]))

    assert reason_of(second.run(other[0])) is Reason.ALREADY_RAN
    for name in (other[0], *other[1]):
        answer = second.post(name).get_json()
        assert (answer["job"], answer["reason"]) == (other[0], "already ran")
    assert second.marks == 1


@each_pair
def test_in_a_rolling_deploy_the_release_that_runs_keeps_every_other_out(
    make_world: Callable[..., World], gate: Gate, one: Release, other: Release
) -> None:
    first = release(make_world(CRONLOCK_INSTANCE="web.1"), *one, work=gate.hold)
    second = release(make_world(), *other)

    with running(first, one[0], gate) as winner:
        for name in (other[0], *other[1]):
            answer = second.post(name).get_json()
            assert answer["reason"] == "already running"
            assert answer["held_by"].startswith("web.1/")
        assert reason_of(second.run(other[0], force=True)) is Reason.ALREADY_RUNNING
    value_of(winner.result())
    assert second.marks == 0


@pytest.mark.parametrize("before", [TWICE[:1], TWICE])
def test_what_ran_under_the_new_name_before_the_old_one_was_told_counts_too(
    make_world: Callable[..., World], before: list[str]
) -> None:
    hasty = release(make_world(), "daily-digest", [], max_lateness="1000d")
    value_of(hasty.run("daily-digest"))
    cured = release(make_world(), "daily-digest", before, max_lateness="1000d")

    assert reason_of(cured.run("daily-digest")) is Reason.ALREADY_RAN

    value_of(cured.run("daily-digest", slot=slot_at(cured.database, 1)))
    assert reason_of(hasty.run("daily-digest")) is Reason.ALREADY_RAN


@pytest.mark.parametrize("state", ["broken", "missed"])
def test_a_slot_counts_by_what_is_most_under_any_name(
    world: World, database: Database, state: str
) -> None:
    release(world, "daily-digest", TWICE)
    put(database, [0], state, job="digest")
    put(database, [0], job="daily-digest")

    assert reason_of(world.run("daily-digest")) is Reason.ALREADY_RAN


def test_a_slot_that_is_broken_under_any_name_is_broken(world: World, database: Database) -> None:
    release(world, "daily-digest", TWICE)
    put(database, [0], "missed", job="digest")
    put(database, [0], "broken", job="mail-digest")

    assert "--force" in str(error_of(world.run("daily-digest")))
    assert world.marks == 0


def test_a_slot_that_was_missed_under_any_name_can_be_run(world: World, database: Database) -> None:
    release(world, "daily-digest", TWICE)
    for name in ("daily-digest", *TWICE):
        put(database, [0], "missed", job=name)

    value_of(world.run("daily-digest"))

    assert reason_of(world.run("daily-digest")) is Reason.ALREADY_RAN
    assert world.marks == 1


@pytest.mark.parametrize("name", ["daily-digest", *TWICE])
def test_the_last_run_under_any_name_is_the_last_run(
    world: World, database: Database, name: str
) -> None:
    found: list[Run] = []
    world.cron.job("daily-digest", every=EVERY, previous_names=TWICE)(lambda run: found.append(run))
    put(database, [3], job=name)
    know(database, known_since=slot_at(database, 5))

    value_of(world.run("daily-digest"))

    assert found[0].previous_slot == slot_at(database, 3)
    known = {name: {3: "done"}, "digest": {0: "done", 1: "missed", 2: "missed"}}
    known["digest"] |= {3: "done"} if name == "digest" else {}
    assert states(database) == known["digest"]
    assert states(database, name) == known[name]


def test_holders_shows_the_job_at_each_of_its_keys(world: World, gate: Gate) -> None:
    release(world, "daily-digest", TWICE, work=gate.hold)

    with running(world, "daily-digest", gate):
        holders = json.loads(cron(world, "holders", "--json").stdout)

    assert [holder["job"] for holder in holders] == ["daily-digest"] * 3
    assert len({holder["key"] for holder in holders}) == 3
    assert len({holder["pid"] for holder in holders}) == 1


@pytest.mark.parametrize("name", ["daily-digest", *TWICE])
def test_a_foreign_holder_of_any_of_its_keys_keeps_it_out_and_is_named(
    world: World, database: Database, name: str
) -> None:
    release(world, "daily-digest", TWICE)

    with database.connect(application_name="psql") as foreign, foreign.transaction():
        foreign.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        answer = world.post("daily-digest").get_json()
        free = database.value(
            f"SELECT count(*) FROM {ADVISORY_LOCKS} AND pid <> %s", foreign.info.backend_pid
        )

    assert answer["reason"] == "already running"
    assert answer["held_by"].startswith("psql")
    assert free == 0
    value_of(world.run("daily-digest"))


@pytest.mark.parametrize("name", ["daily-digest", *TWICE])
def test_an_overdue_holder_of_any_of_its_keys_is_ended(world: World, name: str) -> None:
    release(world, "daily-digest", TWICE)

    with escaped(world, name, timeout=BRISK) as holder:
        wait_until(lambda: json.loads(cron(world, "holders", "--json").stdout)[0]["overdue"])
        assert reason_of(world.run("daily-digest")) is Reason.ALREADY_RUNNING
        wait_until(lambda: free(world.database))
        value_of(world.run("daily-digest"))

    assert isinstance(holder.exception(30), JobTimeout)


@pytest.mark.parametrize("before", [TWICE[:1], TWICE])
def test_of_many_contenders_for_several_locks_exactly_one_has_them_all(
    make_world: Callable[..., World], database: Database, before: list[str]
) -> None:
    """The locks are taken slowly, so that the contenders' tries go by turns."""
    contenders = 6
    worlds = [make_world(engine_options=LOOK_HERE_FIRST) for _ in range(contenders)]
    waiting: list[threading.Barrier] = []
    for world in worlds:
        # Whoever wins waits until all the others have been turned away.
        release(world, "daily-digest", before, work=lambda: waiting[-1].wait(30))
    make_slow(database)

    def contend(world: World) -> object:
        outcome = world.run("daily-digest", force=True)
        if not isinstance(outcome, Ran):
            waiting[-1].wait(30)
        return outcome

    for _ in range(12):
        waiting.append(threading.Barrier(contenders))
        outcomes = at_once([lambda world=world: contend(world) for world in worlds])
        assert sum(isinstance(outcome, Ran) for outcome in outcomes) == 1
        for outcome in outcomes:
            if not isinstance(outcome, Ran):
                assert reason_of(outcome) is Reason.ALREADY_RUNNING


def test_a_job_that_runs_is_seen_by_both_releases_at_once(
    make_world: Callable[..., World],
) -> None:
    new = release(make_world(), *RELEASES[2])
    old = make_world()
    told: list[Any] = []
    release(old, *RELEASES[0], work=lambda: told.append(elsewhere(lambda: cron(new, "holders"))))

    value_of(old.run("digest"))

    assert "daily-digest" in told[0].output


@pytest.mark.parametrize("names", [["daily-digest"], ["Digest"], [1], ["taken"], "daily-digest"])
def test_names_that_it_cannot_have_had_are_refused(world: World, names: Any) -> None:
    world.cron.job("taken")(lambda: None)

    with pytest.raises(RegistrationError, match="daily-digest"):
        world.cron.job("daily-digest", previous_names=names)(lambda: None)


def test_one_old_name_may_be_given_as_it_is(world: World) -> None:
    world.cron.job("daily-digest", every=EVERY, previous_names="digest")(world.mark)
    assert world.post("digest").get_json()["job"] == "daily-digest"


def test_an_old_name_is_not_to_be_had_by_another_job(world: World) -> None:
    release(world, "daily-digest", TWICE)

    with pytest.raises(RegistrationError, match=r"'digest'.*is taken"):
        world.cron.job("digest")(lambda: None)


def test_it_is_listed_once(world: World) -> None:
    release(world, "daily-digest", TWICE)

    told = world.app.test_cli_runner().invoke(args=["cron", "list"])

    assert told.output.count("digest") == 1


def test_what_ran_under_another_name_while_the_locks_were_asked_for_has_run(
    make_world: Callable[..., World], database: Database
) -> None:
    """The statement that gets the locks began before that run's commit, and sees none of it."""
    forgetful = release(make_world(), "mail-digest", [])
    complete = release(make_world(engine_options=LOOK_HERE_FIRST), "mail-digest", ["digest"])
    make_waiting(database)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(complete.run, "mail-digest")
        wait_until(lambda: one_waits(database))
        value_of(forgetful.run("mail-digest"))
        let_go(database)
        assert reason_of(late.result()) is Reason.ALREADY_RAN
    assert forgetful.marks == 1
