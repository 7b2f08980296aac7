"""``flask cron clock`` is a process: it says what it does, and ends as it is told to."""

from __future__ import annotations

import re
import signal
import time
from datetime import datetime

import pytest

from ..support.clock_processes import TRACEBACK, Stage, ran_every_slot_once
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

TICK = {"tick": {"every": "1s", "catch_up": "all"}}
HOUR_LONG = {"long": {"every": "2s", "catch_up": "all", "timeout": "2h", "seconds": 3600}}
AT_ONCE = {"long": {**HOUR_LONG["long"], "seconds": 0}}
STOPS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])


@pytest.fixture
def stage(database: Database, world: World) -> Stage:
    return Stage(database)


def test_a_clock_runs_each_slot_and_says_a_line_for_its_start_each_firing_and_its_end(
    stage: Stage,
) -> None:
    with stage.clock(TICK) as clock:
        stage.wait_for_effects("tick", 3)
        assert clock.end() == 0
        said = clock.said()

    ran_every_slot_once(stage, "tick", 1)
    assert TRACEBACK not in said
    assert said.count("The clock began: 1 jobs with slots, 8 workers.\n") == 1
    fired = r"The clock fires tick for (\S+), \d+ ms late\.$"
    told = [datetime.fromisoformat(slot) for slot in re.findall(fired, said, re.M)]
    assert told == stage.effects("tick")
    assert said.count("The clock stopped.\n") == 1
    assert said.endswith("The clock stopped.\n")


@STOPS
def test_a_run_that_goes_on_is_finished_within_the_grace(stage: Stage, number: int) -> None:
    jobs = {"slow": {"every": "2s", "catch_up": "all", "seconds": 3}}
    with stage.clock(jobs) as clock:
        stage.wait_for_begun("slow")
        assert clock.end(number) == 0
        said = clock.said()

    assert len(stage.effects("slow")) == 1
    assert stage.ledger("slow") == stage.effects("slow") == stage.begun("slow")
    assert said.endswith("The clock stopped.\n")
    assert TRACEBACK not in said


@STOPS
@pytest.mark.parametrize("route", ["direct", "pgbouncer"], indirect=True)
def test_a_run_beyond_the_grace_is_cut_off_and_the_next_clock_runs_its_slot(
    stage: Stage, route: str, number: int
) -> None:
    with stage.clock(HOUR_LONG, "--grace", "0.5s", url=route) as clock:
        stage.wait_for_begun("long")
        assert stage.database.advisory_locks() == 1
        assert clock.end(number, 0.5 + SLACK) == 0
        wait_until(lambda: stage.database.advisory_locks() == 0, SLACK)
        said = clock.said()
    cut_off = stage.begun("long")
    assert stage.effects("long") == stage.ledger("long") == []
    assert said.endswith("The clock stopped, and cut off 1 runs.\n")
    assert TRACEBACK not in said

    with stage.clock(AT_ONCE, url=route) as clock:
        stage.wait_for_effects("long", 2)
        assert clock.end() == 0
    assert stage.effects("long")[:1] == cut_off
    assert stage.begun("long")[:2] == cut_off * 2


@STOPS
def test_a_second_signal_ends_a_clock_at_once(stage: Stage, number: int) -> None:
    with stage.clock(HOUR_LONG, "--grace", "1h") as clock:
        stage.wait_for_begun("long")

        def gone() -> bool:
            clock.send(number)
            time.sleep(0.2)
            return clock.popen.poll() is not None

        wait_until(gone, SLACK)
        assert clock.popen.returncode == -number
        assert TRACEBACK not in clock.said()
    assert stage.effects("long") == []


def test_a_clock_that_has_nothing_to_do_ends_at_once(stage: Stage) -> None:
    jobs = {"yearly": {"schedule": "0 0 1 1 *"}}
    with stage.clock(jobs) as clock:
        assert clock.end(signal.SIGTERM, SLACK) == 0
        assert clock.said().endswith("The clock stopped.\n")
