"""A clock that cannot look, begin a run or record it, though its database is there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from flask_cronlock import clock, lookout

from ..support.clocks import engine_of, has_run, know_jobs, ticking
from ..support.commands import stranger_to
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.worlds import World, bare_world

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_pool_that_the_app_has_used_up_is_waited_for(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    world = make_world(engine_options={"pool_size": 2, "max_overflow": 0, "pool_timeout": 0.1})
    world.cron.job("digest", every="1000d")(world.mark)
    know_jobs(world, LONG_AGO)
    with ExitStack() as stack, ticking(world) as clocks:
        wait_until(lambda: has_run(world, "digest", 1))
        clocks.stop()
        for _ in range(2):
            stack.enter_context(engine_of(world).connect())
        clocks.start(world)
        wait_until(lambda: clocks.log.of("clock_waits"))
        stack.close()
        wait_until(lambda: clocks.log.of("clock_resumed"))
    (waits,) = clocks.log.of("clock_waits")
    assert "raise pool_size or pool_timeout" in waits
    assert world.marks == 1


def test_a_run_that_cannot_begin_is_told_with_its_cure_and_tried_again(
    world: World, database: Database
) -> None:
    with stranger_to(database) as url, ExitStack() as stack:
        role = url.partition("//")[2].partition("@")[0]
        stack.callback(database.query, f"DROP OWNED BY {role}")
        database.query(f"GRANT SELECT ON cronlock_run, cronlock_attempt TO {role}")
        database.query(f"GRANT SELECT, INSERT, UPDATE ON cronlock_job TO {role}")
        limited = stack.enter_context(bare_world(database, url=url))
        limited.cron.job("digest", every="1000d")(lambda: None)
        know_jobs(limited, LONG_AGO)
        with ticking(limited) as clocks:
            wait_until(lambda: len(clocks.log.of("clock_failed", "digest")) == 2)
            assert world.runs() == world.attempts() == []
            database.query(f"GRANT INSERT, UPDATE ON cronlock_run TO {role}")
            wait_until(lambda: has_run(world, "digest", 1))
    assert "GRANT SELECT, INSERT, UPDATE" in clocks.log.of("clock_failed")[0]
    assert all(record.exc_info is None for record in clocks.log.records)


def test_a_failure_that_cannot_be_recorded_is_not_tried_without_pause(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "AGAIN", 1.0)

    @world.cron.job("failing", every="1000d")
    def failing() -> None:
        world.mark()
        raise ValueError("as asked")

    know_jobs(world, LONG_AGO)
    database.query(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE ''as asked''; END';"
        "CREATE TRIGGER refuse BEFORE INSERT ON cronlock_attempt EXECUTE FUNCTION refuse()"
    )
    with ticking(world) as clocks:
        wait_until(lambda: world.marks == 3)
    first, second, third = (
        record.created
        for record in clocks.log.records
        if record.__dict__["action"] == "clock_fired"
    )
    assert second - first >= 1
    assert third - second >= 1


def test_a_fault_of_ours_shows_where_it_is_and_ends_no_clock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    world.cron.job("tick", every="1s")(world.mark)
    look, raised = lookout.Lookout.look, []

    def break_twice(self: lookout.Lookout, now: float) -> list[lookout.Firing]:
        if len(raised) < 2:
            raised.append(1)
            raise KeyError("as asked")
        return look(self, now)

    monkeypatch.setattr(lookout.Lookout, "look", break_twice)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "tick", 2))
    (waits,) = [r for r in clocks.log.records if r.__dict__["action"] == "clock_waits"]
    assert waits.exc_info is not None
    assert "break_twice" in str(waits.exc_info[1].__traceback__.tb_next.tb_frame.f_code)


def test_a_look_that_takes_long_ends_no_clock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it may where the app's pool is used up: then it has no time left to sleep."""
    monkeypatch.setattr(lookout, "LOOK", 0)
    world.cron.job("tick", every="1s")(world.mark)
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "tick", 2))
    assert not clocks.log.troubles()
