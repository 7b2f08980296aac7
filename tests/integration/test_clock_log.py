"""What a clock says, what it asks the database for, and that it sleeps when nothing is due."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import event

from ..support.clocks import (
    engine_of,
    has_run,
    know_jobs,
    lookout_of,
    ticking,
)
from ..support.outcomes import reason_of, value_of
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def statements_of(world: World) -> list[str]:
    """Return the list that each statement of the world is added to from now on."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(engine_of(world), "before_cursor_execute", note)
    return seen


def test_start_each_firing_and_end_are_one_record_each(world: World) -> None:
    world.cron.job("digest", every="1000d")(world.mark)
    world.cron.job("no-slots")(world.mark)
    know_jobs(world, LONG_AGO)
    with ticking(world, workers=3) as clocks:
        wait_until(lambda: clocks.log.of("job_succeeded"))
    actions = [record.__dict__["action"] for record in clocks.log.records]
    ran = ["clock_fired", "job_started", "job_succeeded"]
    assert actions == ["clock_started", *ran, "clock_stopped"]
    (started,), (fired,) = clocks.log.of("clock_started"), clocks.log.of("clock_fired")
    assert "1 jobs with slots, 3 workers" in started
    assert "digest for 20" in fired


def test_the_log_tells_how_late_a_slot_is_fired(world: World) -> None:
    world.cron.job("tick", every="1s")(world.mark)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "tick", 3))
    late = [int(words.split()[-3]) for words in clocks.log.of("clock_fired")]
    assert all(milliseconds >= 0 for milliseconds in late)
    assert min(late) < 1000


def test_the_run_is_the_clocks(world: World) -> None:
    world.cron.job("digest", every="1000d")(world.mark)
    know_jobs(world, LONG_AGO)
    with ticking(world):
        wait_until(lambda: has_run(world, "digest", 1))
    asked = "SELECT trigger, forced FROM cronlock_run WHERE state = 'done'"
    assert world.database.query(asked) == [("clock", False)]


def test_with_nothing_due_it_asks_the_database_nothing(world: World) -> None:
    for name in ("a", "b"):
        world.cron.job(name, every="1000d")(world.mark)
    know_jobs(world, LONG_AGO)
    seen = statements_of(world)

    def quiet() -> bool:
        before = len(seen)
        time.sleep(2)
        return len(seen) == before

    with ticking(world):
        wait_until(lambda: has_run(world, "a", 1) and has_run(world, "b", 1))
        wait_until(quiet, seconds=20)


def test_a_look_takes_few_statements_however_many_jobs_there_are(world: World) -> None:
    for number in range(200):
        world.cron.job(f"job-{number}", every="1000d")(world.mark)
    know_jobs(world, LONG_AGO)
    looks = lookout_of(world)
    looks.look(0)
    again = lookout_of(world)
    seen = statements_of(world)
    assert len(again.look(0)) == 200
    assert len(seen) <= 4


def test_a_slot_that_ran_elsewhere_is_asked_about_once(world: World) -> None:
    world.cron.job("digest", every="1000d")(world.mark)
    know_jobs(world, LONG_AGO)
    value_of(world.run("digest"))
    looks = lookout_of(world)
    assert looks.look(0) == []
    seen = statements_of(world)
    assert looks.look(30) == []
    assert len(seen) == 1


def test_a_look_is_due_when_half_a_minute_is_over_or_a_slot_begins(world: World) -> None:
    world.cron.job("hourly", every="1000d")(world.mark)
    looks = lookout_of(world)
    assert looks.seconds(100) == 0
    looks.look(100)
    assert looks.seconds(100) == 30
    assert looks.seconds(125) == 5
    assert looks.seconds(131) == 0
    world.cron.job("each", every="1s")(world.mark)
    both = lookout_of(world)
    both.look(100)
    assert 0 < both.seconds(100) <= 1


def test_an_app_that_is_not_enabled_runs_nothing_and_says_so(
    make_world: Callable[..., World],
) -> None:
    world = make_world(CRONLOCK_ENABLED=False)
    world.cron.job("digest", every="1000d")(world.mark)
    world.cron.job("tick", every="1s")(world.mark)
    know_jobs(world, LONG_AGO)
    seen = statements_of(world)
    with ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("clock_idle"))
        time.sleep(1.5)
    assert seen == []
    assert world.marks == 0
    actions = [record.__dict__["action"] for record in clocks.log.records]
    assert actions == ["clock_started", "clock_idle", "clock_stopped"]
    assert "CRONLOCK_ENABLED" in clocks.log.of("clock_idle")[0]
    assert reason_of(world.run("digest")) == "paused"


def test_a_clock_without_jobs_sleeps(world: World) -> None:
    world.cron.job("no-slots")(world.mark)
    looks = lookout_of(world)
    assert looks.look(0) == []
    assert looks.seconds(0) == 30


@pytest.mark.parametrize("level", ["slots", "none"])
def test_it_stops_at_once_while_it_sleeps(world: World, level: str) -> None:
    if level == "slots":
        world.cron.job("digest", every="1000d")(world.mark)
    with ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("clock_started"))
        time.sleep(0.2)
        began = time.monotonic()
        clocks.stop()
        assert time.monotonic() - began < 5
