"""A COMMIT's answer is lost, or the database goes away: no item is done twice, and none lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from flask_cronlock import Item

from ..support.databases import Database
from ..support.processes import wait_until
from ..support.tasks import Redeliver, Row, records, rows, work, work_to_the_end
from ..support.wire import Cut, Wire
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

COMMIT = b"COMMIT\0"


@pytest.fixture
def world(make_world: Callable[..., World], database: Database, wire: Wire) -> World:
    """A world behind the wire."""
    return make_world(url=wire.url(database), engine_options={"pool_pre_ping": True})


def deferred(world: World, task: Callable[..., object], count: int = 1) -> Row:
    with world.app.app_context():
        items = [{"n": n} for n in range(count)]
        world.cron.defer_many(world.db.session, task, items, batch=count)
        world.db.session.commit()
    [row] = rows(world)
    return row


def settle(world: World, wire: Wire) -> None:
    """Wait until the server has seen that connections broke."""
    wire.mend()
    wait_until(
        lambda: (
            not world.database.value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE '%in transaction%'"
            )
        )
    )


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(
    ("cut", "refuse"), [(Cut.BEFORE, False), (Cut.AFTER, False), (Cut.AFTER, True)]
)
def test_an_item_whose_commit_is_lost_is_done_once(
    world: World, wire: Wire, cut: Cut, refuse: bool, count: int
) -> None:
    @world.cron.task
    def write(item: Item, n: int) -> None:
        if not armed:
            # Of the items' own transaction, and not of what is written before it.
            armed.append(wire.cut_at(COMMIT, cut, refuse=refuse))
        world.note(str(n))

    armed: list[None] = []
    row = deferred(world, write, count)
    delivered = 0
    try:
        work(world, row)
    except Redeliver:
        delivered = 1
    assert wire.was_cut.is_set()
    settle(world, wire)
    work_to_the_end(world, row, delivered)

    assert world.notes == [str(n) for n in range(count)]
    assert set(records(world, "state")) == {"done"}


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
def test_a_record_whose_commit_is_lost_before_the_call_makes_no_call_too_many(
    world: World, wire: Wire, cut: Cut, delivery: str
) -> None:
    @world.cron.task(delivery=delivery, attempts=2)
    def send(n: int) -> None:
        world.mark()

    row = deferred(world, send)
    wire.cut_at(b"INSERT INTO cronlock_item", cut)
    try:
        work(world, row)
    except Redeliver:
        settle(world, wire)
        work_to_the_end(world, row, 1)
    assert wire.was_cut.is_set()
    assert world.marks == 1
    assert records(world, "state") == ["done"]


@pytest.mark.parametrize(
    ("cut", "refuse", "delivery"),
    [
        (Cut.BEFORE, False, "at_most_once"),
        (Cut.AFTER, False, "at_least_once"),
        (Cut.BEFORE, True, "at_least_once"),
        (Cut.AFTER, True, "at_most_once"),
    ],
)
def test_what_became_of_a_call_is_written_again_where_its_commit_is_lost(
    world: World, wire: Wire, cut: Cut, refuse: bool, delivery: str
) -> None:
    @world.cron.task(delivery=delivery, attempts=2)
    def send(n: int) -> None:
        world.mark()
        wire.cut_at(COMMIT, cut, refuse=refuse)
        if refuse:
            timer.start()

    timer = threading.Timer(1.5, wire.mend)
    row = deferred(world, send)
    assert work(world, row).done == 1
    assert wire.was_cut.is_set()
    timer.cancel()
    assert world.marks == 1
    assert records(world) == [("done", 1, False)]


def test_a_database_that_is_away_for_a_while_after_a_call_learns_of_it(
    world: World, wire: Wire
) -> None:
    @world.cron.task(delivery="at_least_once", attempts=3)
    def send(n: int) -> None:
        world.mark()
        wire.refusing = True
        wire.hang_up()
        timer.start()

    timer = threading.Timer(3, wire.mend)
    row = deferred(world, send)
    begun = time.monotonic()
    assert work(world, row).done == 1
    assert time.monotonic() - begun >= 3
    assert world.marks == 1
    assert records(world) == [("done", 1, False)]


def test_a_database_that_is_away_puts_the_row_back(world: World, wire: Wire) -> None:
    @world.cron.task
    def write(n: int) -> None:
        world.note(str(n))

    row = deferred(world, write, 3)
    wire.refusing = True
    wire.hang_up()
    with pytest.raises(Redeliver):
        work(world, row)
    settle(world, wire)
    assert work(world, row, 1).done == 3
    assert world.notes == ["0", "1", "2"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_connection_that_breaks_in_a_call_keeps_neither_record_nor_effect(
    world: World, wire: Wire, count: int
) -> None:
    @world.cron.task
    def write(n: int) -> None:
        world.note(str(n))
        if not broken:
            broken.append(n)
            wire.hang_up()
            world.note("lost")

    broken: list[int] = []
    row = deferred(world, write, count)
    with suppress(Redeliver):
        work(world, row)
    assert broken
    settle(world, wire)
    work_to_the_end(world, row, 1)
    assert world.notes == [str(n) for n in range(count)]
    assert set(records(world, "state")) == {"done"}
