"""What would stop a clock, or make it silent: too much at once, lost rows, hung workers."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from flask_cronlock import Ran, agenda, clock, lookout
from flask_cronlock.testing import manual_clock

from ..support.bodies import Gate
from ..support.clocks import has_run, know_jobs, lookout_of, ticking
from ..support.processes import wait_until
from ..support.sites import BRISK
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_reading_the_schedules_may_take_longer_than_a_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage there is much to read, and no transaction is kept open for that."""
    read, delays = agenda.slots_due, [BRISK, BRISK]

    def read_slowly(*about: object) -> object:
        time.sleep(delays.pop() if delays else 0)
        return read(*about)

    monkeypatch.setattr(lookout, "SHORT_TIMEOUT", timedelta(seconds=BRISK))
    monkeypatch.setattr(agenda, "slots_due", read_slowly)
    for name in ("one", "other"):
        world.cron.job(name, every="1s", catch_up="all")(world.mark)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "one", 2) and has_run(world, "other", 2))
    assert not delays
    assert not clocks.log.troubles()
    assert world.database.value("SELECT count(known_since) FROM cronlock_job") == 2


def test_of_a_long_list_that_has_run_the_rest_is_come_to_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "MOST_OF_ONE", 2)
    monkeypatch.setattr(lookout, "MOST_ASKED", 3)
    for name in ("one", "other"):
        world.cron.job(name, every="1d", catch_up="all")(world.mark)
    newest = world.database.value("SELECT date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC')")
    newest = newest.replace(tzinfo=UTC)
    know_jobs(world, newest - timedelta(days=5, hours=1))
    for age in range(1, 6):
        for name in ("one", "other"):
            assert isinstance(world.run(name, slot=newest - timedelta(days=age)), Ran)

    looks = lookout_of(world)
    fired = [firing for _ in range(8) for firing in looks.look(now=0.0)]
    assert [(firing.entry.job.name, firing.slot.at) for firing in fired] == [
        ("one", newest),
        ("other", newest),
    ]


def test_a_slot_whose_row_was_lost_with_the_database_is_run_again(world: World) -> None:
    digests: list[datetime] = []
    world.cron.job("digest", every="1000d")(lambda: digests.append(datetime.now(UTC)))
    world.cron.job("tick", every="1s")(world.mark)
    know_jobs(world, LONG_AGO)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "digest", 1))
        world.database.query("ALTER TABLE cronlock_run RENAME TO away")
        wait_until(lambda: clocks.log.of("clock_waits"))
        world.database.query("DELETE FROM away WHERE job = 'digest'")
        world.database.query("ALTER TABLE away RENAME TO cronlock_run")
        wait_until(lambda: len(digests) == 2)


def test_slots_that_no_worker_comes_to_are_told_of_once(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "BUSY_AFTER", 0.5)
    monkeypatch.setattr(lookout, "LOOK", 0.2)
    world.cron.job("held", every="1000d")(gate.hold)
    world.cron.job("tick", every="1s")(world.mark)
    know_jobs(world, LONG_AGO)
    with ticking(world, workers=1) as clocks:
        assert gate.entered.wait(30)
        wait_until(lambda: clocks.log.of("clock_busy"))
        time.sleep(1.5)
        (told,) = clocks.log.of("clock_busy")
        gate.open()
        wait_until(lambda: has_run(world, "tick", 2))
    assert "All 1 workers" in told


def test_a_log_that_raises_ends_no_worker(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LOOK", 1.0)

    def refuse(record: logging.LogRecord) -> bool:
        if getattr(record, "action", "") == "clock_fired" and not refused:
            refused.append(record)
            raise RuntimeError("no room in the log")
        return True

    refused: list[logging.LogRecord] = []
    world.cron.job("tick", every="1s")(world.mark)
    logger = logging.getLogger("flask_cronlock")
    logger.addFilter(refuse)
    try:
        with ticking(world, workers=1):
            wait_until(lambda: has_run(world, "tick", 2))
    finally:
        logger.removeFilter(refuse)
    assert refused


def test_a_job_that_was_first_seen_in_the_future_is_caught_up_once_time_is_right(
    world: World,
) -> None:
    world.app.testing = True
    world.cron.job("digest", schedule="* * * * *", catch_up="all")(world.mark)
    with manual_clock(world.app, "2036-01-01T00:00:30Z"):
        pass
    with manual_clock(world.app, "2026-08-03T12:00:30Z") as right:
        assert right.fire() == []
    with manual_clock(world.app, "2026-08-03T12:03:30Z") as restarted:
        assert len(restarted.fire()) == 3


def test_under_none_a_slot_that_began_in_a_pause_has_gone_by(world: World) -> None:
    world.app.testing = True
    world.cron.job("digest", schedule="0 * * * *", catch_up="none")(world.mark)
    with manual_clock(world.app, "2026-08-03T11:59:30Z") as hands:
        world.database.query("UPDATE cronlock_job SET paused_at = now()")
        hands.tick("1m")
        assert hands.fire() == []
        world.database.query("UPDATE cronlock_job SET paused_at = NULL")
        hands.tick("50m")
        assert hands.fire() == []
        hands.tick("10m")
        assert len(hands.fire()) == 1
