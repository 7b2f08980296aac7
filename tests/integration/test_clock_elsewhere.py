"""A slot that is being run elsewhere: the clock waits for its end, and comes back if it dies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from flask_cronlock import lookout

from ..support.bodies import Gate, running
from ..support.clocks import count_looks, has_run, know_jobs, logged, slots_of, ticking
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LONG = "1000d"
KNOWN = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def foreign_holder(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """Hold the job's lock as a service in another language does, until the connection ends."""
    connection = database.connect(options="-c application_name=elsewhere")
    with connection:
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))")
        yield connection


@pytest.fixture
def world(world: World) -> World:
    """A world that knows its job for years, so that a clock catches up the job's newest slot."""
    world.cron.job("digest", every=LONG)(world.mark)
    know_jobs(world, KNOWN)
    return world


def test_a_holder_that_dies_leaves_its_slot_to_the_clock(world: World) -> None:
    with foreign_holder(world.database) as holder, ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("job_skipped"))
        holder.close()
        died = time.monotonic()
        wait_until(lambda: has_run(world, "digest", 1))
        assert time.monotonic() - died < lookout.RECHECK + SLACK
    assert len(clocks.log.of("clock_fired")) == 2
    assert not clocks.log.troubles()
    assert world.marks == 1


def test_a_holder_that_goes_on_is_not_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "RECHECK", 0.1)
    with foreign_holder(world.database), ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("job_skipped"))
        told = len(clocks.log.records)
        count_looks(world)(8)
        assert len(clocks.log.records) == told
    assert world.marks == 0


def test_a_run_elsewhere_that_ends_well_leaves_nothing_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setattr(lookout, "RECHECK", 0.1)
    monkeypatch.setattr(lookout, "LOOK", 0.1)
    world.cron.job("held", every=LONG)(gate.hold)
    world.database.query("DELETE FROM cronlock_job")
    know_jobs(world, KNOWN)
    with running(world, "held", gate) as elsewhere, ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("job_skipped", "held"))
        gate.open()
        elsewhere.result(30)
        count_looks(world)(1)
        clocks.stop()
    assert len(clocks.log.of("clock_fired", "held")) == 1
    assert len(slots_of(world, "held", "done")) == 1
    assert not clocks.log.troubles()


def test_a_holder_past_its_deadline_is_ended_and_its_slot_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks like one of our runs that escaped the server's limits."""
    monkeypatch.setattr(lookout, "RECHECK", 0.2)
    deadline = "'cronlock ' || floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    with foreign_holder(world.database) as holder, ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("job_skipped"))
        holder.execute(f"SELECT set_config('application_name', {deadline} || '+500 web/1', false)")
        wait_until(lambda: has_run(world, "digest", 1))
        with pytest.raises(psycopg.OperationalError):
            holder.execute("SELECT 1")
    assert len(clocks.log.of("overdue_holder_ended")) == 1


def test_a_hit_while_the_clock_runs_the_slot_is_told_so(world: World, gate: Gate) -> None:
    world.cron.job("held", every="1s")(gate.hold)
    with ticking(world), logged() as log:
        assert gate.entered.wait(30)
        world.post("held")
        gate.open()
    assert len(log.of("job_skipped", "held")) >= 1
