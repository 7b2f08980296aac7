"""The clock while its database is away, is not ready, or ends its connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import event

from flask_cronlock import clock, lookout

from ..support.clocks import (
    Clocks,
    count_looks,
    engine_of,
    has_run,
    know_jobs,
    slots_of,
    ticking,
    without_gap,
)
from ..support.databases import Database, Server, fresh_database, temporary
from ..support.pgbouncer import pgbouncer_before
from ..support.processes import wait_until
from ..support.wire import Wire
from ..support.worlds import SECRET, World, bare_world, world_on

END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def with_job(world: World) -> World:
    @world.cron.job("tick", every="1s", catch_up="all")
    def tick() -> None:
        world.note("ticked")

    return world


def more_run(world: World, times: int = 2) -> None:
    """Wait until some more slots have run."""
    ran = len(slots_of(world, "tick", "done"))
    wait_until(lambda: has_run(world, "tick", ran + times))


def waited_once(clocks: Clocks, why: str) -> None:
    """Check that the clock said why it waits and that it goes on, each once, and nothing more."""
    (waits,) = clocks.log.of("clock_waits")
    assert why in waits
    assert len(clocks.log.of("clock_resumed")) == 1
    assert "Traceback" not in waits
    assert all(record.exc_info is None for record in clocks.log.records)


def test_a_clock_ticks_on_every_route(route: str, make_world: Callable[..., World]) -> None:
    world = with_job(make_world(url=route))
    with ticking(world) as clocks:
        wait_until(lambda: has_run(world, "tick", 4))
    assert not clocks.log.troubles()
    assert without_gap(slots_of(world, "tick", "done"))
    assert world.database.advisory_locks() == 0


def test_connections_that_died_since_their_last_use_go_unnoticed(world: World) -> None:
    with_job(world)
    with ticking(world):
        more_run(world)
    end_backends(world)
    with ticking(world) as clocks:
        more_run(world)
    assert not clocks.log.troubles()


def test_backends_that_are_ended_again_and_again_cost_no_slot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are ended in a look and some in a run: then it says so, and comes back to the slot."""
    monkeypatch.setattr(lookout, "LOOK", 0.01)
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    with_job(world)
    with ticking(world) as clocks:
        for _ in range(20):
            time.sleep(0.2)
            end_backends(world)
        more_run(world)
    slots = slots_of(world, "tick", "done")
    assert without_gap(slots)
    assert len(world.notes) == len(slots)
    assert len(clocks.log.of("clock_waits")) == len(clocks.log.of("clock_resumed"))


def end_backends(world: World) -> None:
    world.probe.close()
    world.database.query(END_ALL)
    world.probe = world.database.connect()


def test_a_pooler_that_is_restarted_is_found_again(
    postgres: Server, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    with (
        pgbouncer_before(postgres) as pooler,
        world_on(database, url=pooler.url(database)) as world,
    ):
        with_job(world)
        with ticking(world) as clocks:
            more_run(world)
            pooler.stop()
            wait_until(lambda: clocks.log.of("clock_waits"))
            pooler.start()
            more_run(world)
            clocks.stop()
    assert len(clocks.log.of("clock_waits")) == len(clocks.log.of("clock_resumed")) == 1


@pytest.fixture
def wired(wire: Wire, make_world: Callable[..., World]) -> World:
    return with_job(make_world(url=wire.url(make_world().database)))


def test_a_database_that_goes_away_and_comes_back_is_told_of_once(
    wired: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    with ticking(wired) as clocks:
        more_run(wired)
        wire.refusing = True
        wire.hang_up()
        wait_until(lambda: clocks.log.of("clock_waits"))
        count_refusals(wired)
        wire.mend()
        wait_until(lambda: clocks.log.of("clock_resumed"))
        more_run(wired, 3)
    (waits,) = clocks.log.of("clock_waits")
    assert "DatabaseUnreachable" in waits
    assert len(clocks.log.of("clock_resumed")) == 1
    assert without_gap(slots_of(wired, "tick", "done"))


def count_refusals(world: World, times: int = 4) -> None:
    """Wait until the clock has tried some times more to connect."""
    seen: list[object] = []
    event.listen(engine_of(world), "do_connect", lambda *_: seen.append(1))
    wait_until(lambda: len(seen) >= times)


def test_a_database_that_is_away_at_the_start_is_waited_for(
    wired: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    wire.refusing = True
    wire.hang_up()
    with ticking(wired) as clocks:
        wait_until(lambda: clocks.log.of("clock_waits"))
        count_refusals(wired)
        wire.mend()
        more_run(wired)
    waited_once(clocks, "DatabaseUnreachable")


@pytest.fixture
def own_server() -> Iterator[Server]:
    with temporary() as server:
        yield server


def test_a_server_that_is_restarted_is_found_again(own_server: Server) -> None:
    with fresh_database(own_server) as database, world_on(database) as world:
        with_job(world)
        with ticking(world) as clocks:
            more_run(world)
            own_server.stop()
            wait_until(lambda: clocks.log.of("clock_waits"))
            own_server.start()
            more_run(world)
            assert len(clocks.log.of("clock_resumed")) == 1
        world.probe.close()
        world.probe = database.connect()
        assert without_gap(slots_of(world, "tick", "done"))


def test_without_our_tables_it_names_the_cure_and_waits_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    with bare_world(database) as world:
        with_job(world)
        with ticking(world) as clocks:
            count_looks(world)()
            world.create_tables()
            more_run(world)
        waited_once(clocks, "run `flask cron init-db`")


def test_what_a_failed_look_learnt_is_written_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since when a job is known must be in the table, or a restart would catch up nothing."""
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    world.cron.job("known", every="1000d")(world.mark)
    know_jobs(world, datetime(2020, 1, 1, tzinfo=UTC))
    with_job(world)
    world.database.query("ALTER TABLE cronlock_attempt RENAME TO elsewhere")
    with ticking(world) as clocks:
        wait_until(lambda: clocks.log.of("clock_waits"))
        world.database.query("ALTER TABLE elsewhere RENAME TO cronlock_attempt")
        more_run(world)
    assert world.database.query("SELECT 1 FROM cronlock_job WHERE job = 'tick'")


def test_a_password_in_the_url_is_never_logged(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "PAUSES", (0.05,))
    url = f"postgresql+psycopg://postgres:{SECRET}@127.0.0.1:1/none"
    with bare_world(database, url=url) as world:
        with_job(world)
        with ticking(world) as clocks:
            count_refusals(world)
    assert len(clocks.log.of("clock_waits")) == 1
    assert SECRET not in "".join(record.getMessage() for record in clocks.log.records)
