"""Start and deadline of a holder are in its name: a contender ends it only once both are over."""

from __future__ import annotations

import time

import psycopg
import pytest

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.outcomes import LONG, reason_of, value_of
from ..support.worlds import World

TAKE = "SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))"
HOUR = 3_600_000
"""In milliseconds, as in a holder's name."""


@pytest.fixture
def world(world: World) -> World:
    world.cron.job("digest", every=LONG)(world.mark)
    return world


def name_of_a_run(began: int, timeout: int) -> str:
    """Return what a run of *timeout* is called that began so long ago."""
    return f"cronlock {int(time.time() * 1000) - began}+{timeout} web.1/7"


def test_one_past_its_deadline_is_ended_and_its_slot_can_run(
    world: World, database: Database
) -> None:
    with database.connect(application_name=name_of_a_run(HOUR, timeout=1000)) as holder:
        holder.execute("BEGIN")
        holder.execute(TAKE)
        assert reason_of(world.run("digest")) is Reason.ALREADY_RUNNING
        with pytest.raises(psycopg.OperationalError):
            holder.execute("SELECT pg_sleep(2)")
    value_of(world.run("digest"))


@pytest.mark.parametrize(
    "name", [name_of_a_run(HOUR, timeout=2 * HOUR), "psql"], ids=["run", "psql"]
)
def test_one_within_its_time_and_one_that_is_no_run_are_left_alone(
    world: World, database: Database, name: str
) -> None:
    with database.connect(application_name=name) as holder:
        holder.execute("BEGIN")
        holder.execute(TAKE)
        assert reason_of(world.run("digest")) is Reason.ALREADY_RUNNING
        holder.execute("SELECT pg_sleep(0.1)")
