"""The clock in the processes that serve an app: however many start one, a slot runs once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ..support.clock_app import STARTED
from ..support.clock_processes import TRACEBACK, Stage, gaps, ran_every_slot_once
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.worlds import World

JOBS = {
    "every-one": {"every": "1s", "catch_up": "all"},
    "newest": {"every": "1s"},
}
IN_WORKERS = """
from tests.support.clock_app import app, cron

control_socket_disable = True

def post_worker_init(worker):
    cron.start_clock(app)
"""


@pytest.fixture
def stage(database: Database, world: World) -> Stage:
    return Stage(database)


@pytest.fixture
def in_workers(tmp_path: Path) -> list[str]:
    """Options of gunicorn with which each worker starts a clock once it is up."""
    conf = tmp_path / "conf.py"
    conf.write_text(IN_WORKERS, encoding="utf-8")
    return ["-c", str(conf)]


def wait_for_slots(stage: Stage) -> None:
    """Wait until either job has run some slots."""
    for job in JOBS:
        stage.wait_for_effects(job, 6)


def each_slot_ran_once(stage: Stage, said: str) -> None:
    assert TRACEBACK not in said
    assert "UniqueViolation" not in said
    ran_every_slot_once(stage, "every-one", 1)
    slots = stage.effects("newest")
    assert sorted(set(slots)) == slots == stage.ledger("newest") == sorted(stage.begun("newest"))


@pytest.mark.parametrize("route", ["direct", "pgbouncer"], indirect=True)
def test_four_workers_that_each_start_a_clock_run_each_slot_once(
    stage: Stage, route: str, in_workers: list[str]
) -> None:
    with stage.web(JOBS, "-w", "4", *in_workers, url=route) as web:
        wait_for_slots(stage)
        _end(web.process)
        said = web.log.read_text()
    each_slot_ran_once(stage, said)


def test_a_clock_that_is_started_with_the_app_goes_in_every_worker(stage: Stage) -> None:
    with stage.web(JOBS, "-w", "4", START_CLOCK="1") as web:
        wait_for_slots(stage)
        _end(web.process)
        said = web.log.read_text()
    assert said.count(STARTED) == 4
    each_slot_ran_once(stage, said)


def test_a_preloaded_app_has_clocks_where_its_workers_start_them(
    stage: Stage, in_workers: list[str]
) -> None:
    with stage.web(JOBS, "-w", "2", "--preload", *in_workers) as web:
        wait_for_slots(stage)
        workers = set(web.workers())
        _end(web.process)
        said = web.log.read_text()
    assert _pids(stage) <= workers
    each_slot_ran_once(stage, said)


def test_one_worker_is_enough(stage: Stage, in_workers: list[str]) -> None:
    with stage.web(JOBS, "-w", "1", *in_workers) as web:
        wait_for_slots(stage)
        _end(web.process)
        said = web.log.read_text()
    each_slot_ran_once(stage, said)


def test_the_reloader_of_flask_run_has_one_clock_that_runs_each_slot_once(stage: Stage) -> None:
    command = ("run", "--debug", "--port", "0")
    with stage.flask(*command, jobs=JOBS, START_CLOCK="1") as server:
        wait_for_slots(stage)
        (began,) = _pids(stage)
        said = server.said()
    assert began != server.pid
    assert said.count(STARTED) == 1
    assert TRACEBACK not in said
    for job in JOBS:
        slots = stage.effects(job)
        assert sorted(set(slots)) == slots == stage.ledger(job)
    assert set(gaps(stage.effects("every-one"), 1)) == {1.0}


def test_a_reload_ends_the_old_code_s_clock_and_starts_the_new_one_s(
    stage: Stage, tmp_path: Path
) -> None:
    watched = tmp_path / "watched"
    watched.touch()
    command = ("run", "--debug", "--port", "0", "--extra-files", str(watched))
    with stage.flask(*command, jobs=JOBS, START_CLOCK="1") as server:
        stage.wait_for_effects("every-one", 2)
        (before,) = _pids(stage)
        os.utime(watched, (time.time() + 10,) * 2)
        wait_until(lambda: _pids(stage) > {before})
        stage.wait_for_effects("every-one", len(stage.effects("every-one")) + 3)
        assert TRACEBACK not in server.said()
    assert len(_pids(stage)) == 2
    slots = stage.effects("every-one")
    assert set(gaps(slots, 1)) == {1.0}
    assert stage.ledger("every-one") == slots


def test_flask_run_without_a_reloader_runs_each_slot_once(stage: Stage) -> None:
    command = ("run", "--port", "0")
    with stage.flask(*command, jobs=JOBS, START_CLOCK="1") as server:
        wait_for_slots(stage)
        server.end(signal.SIGINT)
        said = server.said()
    each_slot_ran_once(stage, said)


def test_a_command_of_an_app_that_starts_a_clock_starts_none(stage: Stage) -> None:
    with stage.flask("cron", "list", jobs=JOBS, START_CLOCK="1") as command:
        assert command.popen.wait(30) == 0
        said = command.said()
    assert "every-one" in said
    assert "no clock was started" in said
    assert STARTED not in said


def test_the_clock_command_of_an_app_that_starts_a_clock_has_one(stage: Stage) -> None:
    with stage.clock(JOBS, START_CLOCK="1") as clock:
        wait_for_slots(stage)
        assert clock.end() == 0
        said = clock.said()
    assert said.count("The clock began") == 1
    assert STARTED not in said
    each_slot_ran_once(stage, said)


def test_a_run_that_goes_on_is_finished_when_the_server_ends(
    stage: Stage, in_workers: list[str]
) -> None:
    slow = {"slow": {"every": "2s", "catch_up": "all", "seconds": 2}}
    with stage.web(slow, "-w", "1", *in_workers) as web:
        stage.wait_for_begun("slow")
        _end(web.process)
        said = web.log.read_text()
    assert TRACEBACK not in said
    assert stage.effects("slow") == stage.ledger("slow") == stage.begun("slow")
    assert stage.database.advisory_locks() == 0


def _pids(stage: Stage) -> set[int]:
    """Return the processes in which job code began."""
    return {row[0] for row in stage.database.query("SELECT DISTINCT pid FROM begun")}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End gunicorn as its owner would, and wait for its workers' clocks."""
    process.terminate()
    wait_until(lambda: process.poll() is not None, 40)
