"""Several workers with the same rows in hand at once: each item is done once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_cronlock import Item

from ..support.bodies import Gate
from ..support.processes import wait_until
from ..support.tasks import (
    GivenUp,
    Redeliver,
    Tally,
    records,
    rows,
    work,
    work_all,
    work_to_the_end,
)
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

WORKERS = 4
ITEMS = 500


@pytest.fixture
def routed(make_world: Callable[..., World], route: str) -> World:
    return make_world(url=route, engine_options={"pool_size": 2 * WORKERS})


def defer(world: World, task: str, count: int, batch: int) -> None:
    with world.app.app_context():
        items = [{"n": n} for n in range(count)]
        world.cron.defer_many(world.db.session, task, items, batch=batch)
        world.db.session.commit()


@pytest.mark.parametrize("batch", [1, 50])
def test_four_workers_with_all_rows_in_hand_do_each_item_once(routed: World, batch: int) -> None:
    @routed.cron.task
    def write(item: Item, n: int) -> None:
        routed.note(f"{n:03}")

    count = ITEMS if batch > 1 else 40
    defer(routed, "write", count, batch)
    with ThreadPoolExecutor(WORKERS) as pool:
        working = [pool.submit(work_all, routed) for _ in range(WORKERS)]
        for worker in working:
            assert all(isinstance(ended, Tally) for ended in worker.result(120))
    assert routed.notes == [f"{n:03}" for n in range(count)]
    assert set(records(routed, "state")) == {"done"}


def test_four_workers_mark_each_item_that_is_to_be_sent_at_most_once(routed: World) -> None:
    sent: Counter[int] = Counter()
    lock = threading.Lock()

    @routed.cron.task(delivery="at_most_once")
    def send(n: int) -> None:
        with lock:
            sent[n] += 1

    defer(routed, "send", 40, 10)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda _: work_all(routed), range(WORKERS)))
    assert sent == Counter(range(40))
    assert set(records(routed, "state")) == {"done"}


def test_a_slow_item_does_not_hold_up_other_rows(world: World, gate: Gate) -> None:
    @world.cron.task(timeout="60s")
    def write(n: int) -> None:
        world.note(str(n))
        if n == 0:
            gate.hold()

    defer(world, "write", 4, 1)
    slow, *others = rows(world)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, world, slow)
        try:
            assert gate.entered.wait(60), working
            for row in others:
                assert work(world, row).done == 1
            assert world.notes == ["1", "2", "3"]
        finally:
            gate.open()
        assert working.result(60).done == 1
    assert world.notes == ["0", "1", "2", "3"]


def test_an_item_in_another_workers_hands_is_put_back_and_then_known(
    world: World, gate: Gate
) -> None:
    @world.cron.task(timeout="60s")
    def write(n: int) -> None:
        world.mark()
        world.note(str(n))
        gate.hold()

    defer(world, "write", 1, 1)
    [row] = rows(world)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, world, row)
        try:
            assert gate.entered.wait(60), working
            with pytest.raises(Redeliver) as told:
                work(world, row)
            assert told.value.wait is not None
        finally:
            gate.open()
        assert working.result(60).done == 1
    assert work(world, row, 1).known == 1
    assert (world.marks, world.notes) == (1, ["0"])


@pytest.mark.parametrize("count", [1, 3])
def test_one_that_waited_for_another_worker_does_nothing_again(
    world: World, gate: Gate, count: int
) -> None:
    @world.cron.task(timeout="60s")
    def write(n: int) -> None:
        world.mark()
        gate.hold()

    defer(world, "write", count, count)
    [row] = rows(world)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(work, world, row)
        try:
            assert gate.entered.wait(60), first
            second = pool.submit(work_to_the_end, world, row)
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            wait_until(lambda: world.database.value(waiting) or second.done())
        finally:
            gate.open()
        assert first.result(60).done == count
        assert second.result(60)
    assert world.marks == count
    assert set(records(world)) == {("done", 1, False)}


def test_a_poison_item_is_parked_after_its_attempts_and_the_rest_is_done(world: World) -> None:
    @world.cron.task(attempts=3)
    def write(n: int) -> None:
        if n == 7:
            world.mark()
            raise ValueError("poison")
        world.note(f"{n:02}")

    defer(world, "write", 20, 5)
    ended = [work_to_the_end(world, row) for row in rows(world)]
    assert [type(end) for end in ended] == [Tally, GivenUp, Tally, Tally]
    assert len(world.notes) == 19
    assert records(world).count(("failed", 3, False)) == 1
    # Once with the others, and then as often as it may be tried.
    wait_until(lambda: world.marks == 4)
