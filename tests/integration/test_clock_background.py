"""``cron.start_clock``: where it starts a clock, where it does not, and how that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import click
import pytest
from flask.cli import ScriptInfo

from flask_cronlock.background import BackgroundClock
from flask_cronlock.exceptions import ConfigError

from ..support.bodies import Gate
from ..support.clocks import has_run, know_jobs, logged, slots_of
from ..support.databases import Database
from ..support.instances import ROOT, environment
from ..support.outcomes import value_of
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

Start = Callable[..., BackgroundClock]


@pytest.fixture
def start(world: World) -> Iterator[Start]:
    """Start the world's clock, which is stopped at the end of the test."""
    started: list[BackgroundClock] = []

    def call(**how: Any) -> BackgroundClock:
        clock = world.cron.start_clock(world.app, **how)
        assert clock is not None
        started.append(clock)
        return clock

    yield call
    for clock in started:
        clock.stop()


def not_started(world: World) -> str:
    """Check that no clock starts, and return what is logged instead."""
    with logged() as log:
        assert world.cron.start_clock(world.app) is None
    (reason,) = log.of("clock_not_started")
    assert len(log.records) == 1
    return reason


def test_it_runs_slots_in_a_thread_of_its_own(world: World, start: Start) -> None:
    world.cron.job("tick", every="1s")(world.mark)
    clock = start()
    wait_until(lambda: has_run(world, "tick", 2))
    assert clock.running
    clock.stop()
    assert not clock.running
    ran = world.marks
    time.sleep(1.2)
    assert world.marks == ran


def test_no_clock_runs_while_the_app_is_tested(world: World) -> None:
    world.app.testing = True
    assert "the app is being tested" in not_started(world)


@pytest.mark.parametrize("name", ["shell", "db", "flask"])
def test_no_clock_runs_in_other_commands(world: World, name: str) -> None:
    with click.Context(click.Command(name), info_name=name, obj=ScriptInfo()):
        assert f"the command {name!r}" in not_started(world)


def test_a_command_of_the_app_starts_none(world: World) -> None:
    @world.app.cli.command("migrate")
    def migrate() -> None:
        assert world.cron.start_clock(world.app) is None
        click.echo("migrated")

    assert world.app.test_cli_runner().invoke(args=["migrate"]).output == "migrated\n"


def run_command(**parameters: Any) -> click.Context:
    context = click.Context(click.Command("run"), info_name="run", obj=ScriptInfo())
    context.params = parameters
    return context


@pytest.mark.parametrize(("reload", "debug"), [(True, ""), (None, "1")])
def test_no_clock_runs_in_the_parent_of_the_reloader(
    world: World, reload: bool | None, debug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASK_DEBUG", debug)
    with run_command(reload=reload):
        assert "reloader's parent" in not_started(world)


@pytest.mark.parametrize(("reload", "debug"), [(False, "1"), (None, "")])
def test_the_server_of_development_has_one(
    world: World,
    start: Start,
    reload: bool | None,
    debug: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The app's own DEBUG does not matter, since `flask run` does not go by it."""
    monkeypatch.setenv("FLASK_DEBUG", debug)
    world.app.debug = not debug
    with run_command(reload=reload):
        assert start().running


def test_the_reloaders_child_has_one(
    world: World, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WERKZEUG_RUN_MAIN", "true")
    with run_command(reload=True):
        assert start().running


def test_a_server_that_is_a_command_itself_has_one(world: World, start: Start) -> None:
    with click.Context(click.Command("serve"), info_name="a-server"):
        assert start().running


def test_started_twice_it_is_one(world: World, start: Start) -> None:
    with logged() as log:
        clock = start()
        assert start() is clock
        wait_until(lambda: log.of("clock_started"))
        clock.stop()
    assert len(log.of("clock_started")) == len(log.of("clock_stopped")) == 1


def test_started_by_many_threads_at_once_it_is_one(world: World, start: Start) -> None:
    meet = threading.Barrier(8)

    def call(_: int) -> BackgroundClock:
        meet.wait(30)
        return start()

    with logged() as log, ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(call, range(8)))) == 1
        wait_until(lambda: log.of("clock_started"))
    assert len(log.of("clock_started")) == 1


def test_after_a_stop_it_can_be_started_again(world: World, start: Start) -> None:
    world.cron.job("tick", every="1s", catch_up="all")(world.mark)
    first = start()
    wait_until(lambda: has_run(world, "tick", 1))
    first.stop()
    first.stop()
    assert start() is not first
    ran = len(slots_of(world, "tick"))
    wait_until(lambda: has_run(world, "tick", ran + 2))


def test_a_pool_that_is_too_small_is_refused_at_the_start(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 0})
    with pytest.raises(ConfigError, match="needs 2 connections"):
        world.cron.start_clock(world.app)


def with_held(world: World, gate: Gate) -> None:
    """Register a job whose newest slot is to be caught up, and takes until the gate opens."""

    @world.cron.job("held", every="1000d")
    def held() -> None:
        world.note("kept")
        gate.hold()

    know_jobs(world, datetime(2020, 1, 1, tzinfo=UTC))


def test_stop_lets_the_run_that_goes_on_finish(world: World, start: Start, gate: Gate) -> None:
    with_held(world, gate)
    clock = start(grace="30s")
    assert gate.entered.wait(30)
    opening = threading.Timer(0.3, gate.open)
    opening.start()
    clock.stop()
    assert not clock.running
    assert world.notes == ["kept"]
    assert len(slots_of(world, "held", "done")) == 1


def test_stop_waits_for_a_run_no_longer_than_its_grace(
    world: World, start: Start, gate: Gate
) -> None:
    with_held(world, gate)
    clock = start(grace=0.2)
    assert gate.entered.wait(30)
    with logged() as log:
        began = time.monotonic()
        clock.stop()
        assert time.monotonic() - began < 0.2 + SLACK
    (stopped,) = log.of("clock_stopped")
    assert "cut off 1" in stopped
    assert world.notes == []
    gate.open()
    wait_until(lambda: not any(t.name.startswith("cronlock-") for t in threading.enumerate()))


PROGRAM = """
import time
from datetime import timedelta
from tests.support.jobs_app import app, cron, db, mark

@cron.job("held", every="1000d")
def held():
    db.session.execute(db.text("INSERT INTO note VALUES ('held')"))
    mark("begin")
    time.sleep(60)

assert cron.start_clock(app, grace=0.5).running
time.sleep(60)
"""


def test_a_run_that_outlasts_its_grace_is_rolled_back_and_its_slot_open(
    world: World, database: Database, gate: Gate
) -> None:
    """The process ends as an interpreter does: by Ctrl-C, through its exit handlers."""
    gate.open()
    with_held(world, gate)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment(database),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or world.marks)
            os.kill(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=0.5 + 1 + 2 * SLACK)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in output
    wait_until(lambda: database.advisory_locks() == 0)
    assert world.notes == []
    assert world.runs() == world.attempts() == []
    value_of(world.run("held"))
