"""A deploy ends the server in mid-run: the run is finished, or its slot is left to the new one."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..support.databases import Database
from ..support.instances import gunicorn
from ..support.processes import wait_until
from ..support.worlds import World

LONG_RUN = {"JOB_SECONDS": "300"}


@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_a_run_that_outlasts_the_graceful_timeout_is_undone_and_the_new_server_runs_its_slot(
    database: Database, world: World, worker: str
) -> None:
    options = ["-w", "1", "-k", worker, "--graceful-timeout", "1"]
    with ThreadPoolExecutor(1) as pool:
        with gunicorn(database, *options, **LONG_RUN) as old:
            cut_off = pool.submit(old.post, "idle")
            wait_until(lambda: world.marks == 1)
            old.process.send_signal(signal.SIGTERM)
            old.process.wait(30)
        assert cut_off.exception(30) is not None

    wait_until(lambda: database.advisory_locks() == 0)
    assert world.notes == []
    assert world.runs() == []
    with gunicorn(database, *options) as new:
        answers = [new.post("idle").body for _ in range(2)]

    assert [answer["outcome"] for answer in answers] == ["ran", "skipped"]
    assert answers[1]["reason"] == "already ran"
    assert len(world.notes) == 1
    assert [state for *_, state in world.runs()] == ["done"]


@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_a_run_that_ends_within_the_graceful_timeout_is_kept_and_answered(
    database: Database, world: World, worker: str
) -> None:
    options = ["-w", "1", "-k", worker, "--graceful-timeout", "30"]
    with ThreadPoolExecutor(1) as pool:
        with gunicorn(database, *options, JOB_SECONDS="2") as old:
            finished = pool.submit(old.post, "idle")
            wait_until(lambda: world.marks == 1)
            old.process.send_signal(signal.SIGTERM)
            old.process.wait(40)
        assert finished.result(30).body["outcome"] == "ran"

    with gunicorn(database, *options) as new:
        assert new.post("idle").body["reason"] == "already ran"
    assert len(world.notes) == 1
    assert world.attempts() == []
