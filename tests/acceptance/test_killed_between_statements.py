"""A process killed between two statements of a run: all is kept, or the next hit runs the slot."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.instances import ROOT, environment
from ..support.outcomes import reason_of, value_of
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

CLAIM, DONE = "INSERT INTO cronlock_run", "UPDATE cronlock_run"
BEGINNING_AND_END = 2
"""The marks of a body that was entered and left."""


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    world = make_world(url=route)
    world.cron.job("idle", every="1d")(lambda: world.note("next"))
    return world


def run_killed_after(words: str, database: Database, route: str) -> None:
    command = [sys.executable, "-m", "flask", "--app", "tests.support.killed_app"]
    killed = subprocess.run(
        [*command, "cron", "run", "idle"],
        cwd=ROOT,
        env=environment(database, route, KILLED_AFTER=words),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.parametrize(("words", "marks"), [(CLAIM, 0), (DONE, BEGINNING_AND_END)])
def test_one_killed_before_its_commit_leaves_nothing_and_the_next_hit_runs_the_slot(
    database: Database, world: World, route: str, words: str, marks: int
) -> None:
    run_killed_after(words, database, route)

    assert world.marks == marks
    wait_until(lambda: database.advisory_locks() == 0, SLACK)
    assert world.notes == world.runs() == world.attempts() == []
    value_of(world.run("idle"))
    assert world.notes == ["next"]
    assert [state for *_, state in world.runs()] == ["done"]


def test_one_killed_right_after_its_commit_has_run(
    database: Database, world: World, route: str
) -> None:
    run_killed_after("COMMIT", database, route)

    assert database.advisory_locks() == 0
    assert reason_of(world.run("idle")) is Reason.ALREADY_RAN
    assert [note.split()[0] for note in world.notes] == ["idle"]
    assert [state for *_, state in world.runs()] == ["done"]
