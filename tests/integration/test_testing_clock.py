"""The manual clock of an app's own tests: what it moves, what it fires, and where it is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from flask_cronlock import Ran, Reason, Run
from flask_cronlock.exceptions import ConfigError, NestedRun, TablesMissing
from flask_cronlock.testing import manual_clock

from ..support.commands import cron
from ..support.databases import Database
from ..support.outcomes import elsewhere, error_of, reason_of, value_of
from ..support.slots import at
from ..support.time_travel import DAY, SEVEN, START, Recorder, fail, rows, slots_of, stamps
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(TESTING=True)


def database_is_back(world: World) -> bool:
    """Tell whether a run is stamped by the database again."""
    value_of(world.run("x", force=True))
    started = world.database.value("SELECT max(started_at) FROM cronlock_run")
    since: timedelta = world.database.value("SELECT clock_timestamp()") - started
    return timedelta() <= since < timedelta(minutes=5)


def test_runs_take_slot_and_stamps_from_the_clock(world: World) -> None:
    runs: list[Run] = []
    world.cron.job("x", schedule="0 7 * * *", timeout="50s")(lambda run: runs.append(run))

    with manual_clock(world.app, START) as clock:
        assert clock.now() == at(START)
        value_of(world.run("x"))
        assert clock.tick("15s") == clock.now() == SEVEN + timedelta(seconds=5)
        value_of(world.run("x"))
        clock.move_to("2024-06-11T06:59:54Z")
        again = world.run("x")
        clock.tick(1)  # CRONLOCK_EARLY before the slot
        outcome = world.run("x")

    assert [run.slot for run in runs] == [SEVEN - DAY, SEVEN, SEVEN + DAY]
    assert reason_of(again) is Reason.ALREADY_RAN
    assert isinstance(outcome, Ran)
    assert (outcome.slot, outcome.next_slot) == (SEVEN + DAY, SEVEN + 2 * DAY)
    assert runs[-1].started_at == clock.now() == at("2024-06-11T06:59:55Z")
    assert runs[-1].deadline == clock.now() + timedelta(seconds=50)


def test_every_time_in_the_ledger_is_the_clocks(world: World) -> None:
    job = Recorder(world, schedule="0 7 * * *")
    world.cron.job("y", schedule="0 7 * * *")(fail)
    moments = {at(START), SEVEN, SEVEN + 3 * DAY}

    with manual_clock(world.app, START) as clock:
        for moment in sorted(moments):
            clock.move_to(moment)
            clock.fire()
            world.run("y")
        answer = world.post("x").json

    assert job.slots == [SEVEN, SEVEN + 3 * DAY]
    assert rows(world, "missed") == [SEVEN + DAY, SEVEN + 2 * DAY]
    assert stamps(world) == moments
    assert answer["ran_at"] == (SEVEN + 3 * DAY).isoformat()


def test_a_run_ends_when_the_clock_says_so(world: World) -> None:
    world.cron.job("x", schedule="0 7 * * *")(lambda: clock.tick("3h"))
    world.cron.job("y", schedule="0 7 * * *")(lambda: clock.tick("3h") and fail())

    with manual_clock(world.app, SEVEN) as clock:
        outcome = world.run("x")
        world.run("y")
        answer = world.post("x").json

    assert outcome.duration == timedelta(hours=3)
    assert answer["ran_at"] == "2024-06-10T10:00:00+00:00"
    for table in ("run", "attempt"):
        (row,) = world.database.query(f"SELECT started_at, finished_at FROM cronlock_{table}")
        assert row[1] - row[0] == timedelta(hours=3)


def test_a_run_that_outlives_the_clock_keeps_to_it(world: World) -> None:
    def leave() -> None:
        context.__exit__(None, None, None)

    world.cron.job("x", schedule="0 7 * * *")(leave)
    world.cron.job("y", schedule="0 7 * * *")(lambda: [leave(), fail()])

    for name in ("x", "y"):
        context = manual_clock(world.app, SEVEN)
        context.__enter__()
        world.run(name)

    assert stamps(world) == {SEVEN}


def test_a_run_that_began_before_the_clock_keeps_to_the_database(world: World) -> None:
    world.cron.job("x", every="1d")(lambda: elsewhere(context.__enter__))
    world.cron.job("y", every="1d")(lambda: [elsewhere(context.__enter__), fail()])

    for name in ("x", "y"):
        context = manual_clock(world.app, SEVEN)
        world.run(name)
        context.__exit__(None, None, None)

    for table in ("run", "attempt"):
        took = world.database.value(f"SELECT finished_at - started_at FROM cronlock_{table}")
        assert timedelta() <= took < timedelta(minutes=5)


def test_threads_requests_and_commands_keep_to_it(world: World) -> None:
    job = Recorder(world, schedule="0 7 * * *")
    with manual_clock(world.app, SEVEN) as clock:
        value_of(elsewhere(lambda: world.run("x")))
        elsewhere(lambda: clock.move_to(SEVEN + DAY))
        assert world.post("x").json["slot"] == "2024-06-11T07:00:00+00:00"
        clock.tick(DAY)
        assert cron(world, "run", "x").exit_code == 0

    assert job.slots == rows(world) == [SEVEN, SEVEN + DAY, SEVEN + 2 * DAY]


def test_the_time_limit_of_a_run_is_real(world: World) -> None:
    left: list[timedelta] = []

    @world.cron.job("x", schedule="0 7 * * *", timeout="50s")
    def x(run: Run) -> None:
        clock.tick("3h")
        left.append(run.remaining)

    with manual_clock(world.app, SEVEN) as clock:
        value_of(world.run("x"))
    assert timedelta(seconds=30) < left[0] <= timedelta(seconds=50)


def test_holders_are_told_in_real_time(world: World) -> None:
    inside: list[Any] = []
    world.cron.job("x", every="1d")(lambda: inside.append(elsewhere(lambda: world.post("x").json)))

    with manual_clock(world.app, SEVEN):
        value_of(world.run("x"))

    since = datetime.fromisoformat(inside[0]["held_since"])
    assert since > world.database.value("SELECT clock_timestamp()") - timedelta(minutes=5)


def test_it_is_refused_outside_tests(make_world: Callable[..., World]) -> None:
    world = make_world()
    Recorder(world, every="1d")

    with (
        pytest.raises(ConfigError, match=r"set app\.testing = True"),
        manual_clock(world.app, START),
    ):
        pass

    assert database_is_back(world)


def test_an_app_has_one_at_a_time_and_the_refused_one_changes_nothing(world: World) -> None:
    Recorder(world, schedule="0 7 * * *")

    with manual_clock(world.app, SEVEN) as clock:
        for _ in range(2):
            with pytest.raises(ConfigError, match="manual clock already"):
                manual_clock(world.app, SEVEN + DAY).__enter__()
        assert slots_of([world.run("x")]) == [SEVEN]
    with manual_clock(world.app, SEVEN + DAY) as clock:
        assert clock.now() == SEVEN + DAY
        assert slots_of([world.run("x")]) == [SEVEN + DAY]


def test_the_database_s_clock_is_put_back_also_after_an_error(world: World) -> None:
    Recorder(world, every="1d")

    with pytest.raises(ZeroDivisionError), manual_clock(world.app, SEVEN):
        raise ZeroDivisionError
    assert database_is_back(world)


def test_without_the_tables_it_names_the_cure_and_is_not_left_in_place(
    database: Database,
) -> None:
    with bare_world(database, TESTING=True, CRONLOCK_NAMESPACE="x") as world:
        world.database.query("ALTER TABLE cronlock_job RENAME TO elsewhere")
        try:
            Recorder(world, every="1d")
            with pytest.raises(TablesMissing), manual_clock(world.app, SEVEN):
                pass
        finally:
            world.database.query("ALTER TABLE elsewhere RENAME TO cronlock_job")
        assert database_is_back(world)


def test_an_error_that_lets_no_run_begin_is_raised_and_the_slot_waits(world: World) -> None:
    Recorder(world, schedule="0 7 * * *")
    Recorder(world, "y", schedule="0 7 * * *")

    with manual_clock(world.app, START) as clock:
        clock.move_to(SEVEN)
        world.database.query("ALTER TABLE cronlock_run RENAME COLUMN value TO other")
        try:
            with pytest.raises(TablesMissing):
                clock.fire()
        finally:
            world.database.query("ALTER TABLE cronlock_run RENAME COLUMN other TO value")
        assert [outcome.job for outcome in clock.fire()] == ["x", "y"]


def test_inside_a_run_fire_is_refused(world: World) -> None:
    world.cron.job("x", every="1d")(lambda: clock.fire())

    with manual_clock(world.app, SEVEN) as clock:
        assert isinstance(error_of(world.run("x")), NestedRun)


def test_a_job_that_comes_later_is_refused_not_forgotten(world: World) -> None:
    with manual_clock(world.app, SEVEN) as clock:
        world.cron.job("x")(fail)
        assert clock.fire() == []
        world.cron.job("y", every="1d")(fail)
        with pytest.raises(ConfigError, match=r"'y'.*register jobs before"):
            clock.fire()


def test_one_connection_is_enough(make_world: Callable[..., World]) -> None:
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 2}
    world = make_world(TESTING=True, engine_options=options)
    Recorder(world, schedule="0 7 * * *")

    with world.app.app_context(), manual_clock(world.app, START) as clock:
        clock.move_to(SEVEN)
        assert slots_of(clock.fire()) == [SEVEN]


def test_the_clock_in_a_web_process_is_not_started_under_test(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "flask_cronlock"), manual_clock(world.app, START):
        assert world.cron.start_clock(world.app) is None
    assert "clock_not_started" in [getattr(record, "action", "") for record in caplog.records]
