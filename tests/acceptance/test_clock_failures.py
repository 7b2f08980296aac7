"""A clock that is killed, or sleeps and wakes late, neither loses nor doubles a slot."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from ..support.clock_processes import TRACEBACK, Stage, gaps, ran_every_slot_once
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

RECHECK = 5
"""Seconds after which a clock looks again at a slot that is running elsewhere."""
LATEST = {"nap": {"every": "4s", "timeout": "3s", "seconds": 1}}


@pytest.fixture
def stage(database: Database, world: World) -> Stage:
    return Stage(database)


@pytest.mark.parametrize("route", ["direct", "pgbouncer"], indirect=True)
def test_the_slot_of_a_killed_clock_is_run_by_another_one(stage: Stage, route: str) -> None:
    long = {"every": "2s", "catch_up": "all", "timeout": "2h"}
    with stage.clock({"long": {**long, "seconds": 3600}}, url=route) as doomed:
        stage.wait_for_begun("long")
        (slot,) = stage.begun("long")
        with stage.clock({"long": long}, url=route, DYNO="clock.2") as other:
            other.wait_for("was skipped: already running")
            assert stage.effects("long") == []
            doomed.end(signal.SIGKILL)
            stage.wait_for_effects("long", 1, RECHECK + SLACK)
            stage.wait_for_effects("long", 4)
            assert other.end() == 0
            assert TRACEBACK not in doomed.said() + other.said()

    slots = stage.effects("long")
    assert slots[0] == slot
    assert set(gaps(slots, 2)) == {1.0}
    assert stage.ledger("long") == slots
    assert stage.begun("long") == [slot, *slots]


def test_a_clock_that_wakes_late_runs_the_newest_slot_once(stage: Stage) -> None:
    """It sleeps in the middle of a run, for longer than the run may take, and over some slots."""
    with stage.clock(LATEST) as clock:
        stage.wait_for_begun("nap")
        clock.send(signal.SIGSTOP)
        slot = stage.begun("nap")[0]
        asleep_until = slot + timedelta(seconds=12.2)
        wait_until(lambda: stage.now() > asleep_until)
        assert stage.database.advisory_locks() == 0
        assert stage.effects("nap") == []
        clock.send(signal.SIGCONT)
        stage.wait_for_effects("nap", 2)
        assert clock.end() == 0
        said = clock.said()

    ran, missed = stage.effects("nap"), stage.ledger("nap", "missed")
    assert ran[0] - slot >= timedelta(seconds=12)
    assert stage.ledger("nap") == ran
    assert stage.begun("nap") == [slot, *ran]
    assert missed[0] == slot
    assert set(gaps(sorted([*missed, *ran]), 4)) == {1.0}
    assert stage.database.value("SELECT count(*) FROM cronlock_attempt") == 1
    assert said.count("Job nap failed") == 1
    assert "JobTimeout: The job's time was up" in said


def test_while_a_clock_sleeps_another_one_runs_its_slot_and_all_later_ones(stage: Stage) -> None:
    nap = {"every": "2s", "catch_up": "all", "timeout": "3s"}
    with stage.clock({"nap": {**nap, "seconds": 1}}) as sleepy:
        stage.wait_for_begun("nap")
        sleepy.send(signal.SIGSTOP)
        (slot,) = stage.begun("nap")
        with stage.clock({"nap": nap}, DYNO="clock.2") as other:
            stage.wait_for_effects("nap", 5)
            assert stage.effects("nap")[0] == slot
            sleepy.send(signal.SIGCONT)
            stage.wait_for_effects("nap", len(stage.effects("nap")) + 3)
            assert sleepy.end() == other.end() == 0
            assert "JobTimeout" in sleepy.said()
            assert TRACEBACK not in other.said()

    slots = stage.effects("nap")
    assert set(gaps(slots, 2)) == {1.0}
    assert stage.ledger("nap") == slots


@pytest.mark.parametrize("route", ["direct", "pgbouncer"], indirect=True)
def test_two_clocks_of_which_neither_leads_run_each_slot_once(stage: Stage, route: str) -> None:
    jobs = {f"tick-{number}": {"every": "1s", "catch_up": "all"} for number in range(3)}
    with (
        stage.clock(jobs, url=route, DYNO="clock.1") as one,
        stage.clock(jobs, url=route, DYNO="clock.2") as two,
    ):
        for job in jobs:
            stage.wait_for_effects(job, 6)
        assert one.end() == two.end() == 0
        assert TRACEBACK not in one.said() + two.said()
    for job in jobs:
        ran_every_slot_once(stage, job, 1)
