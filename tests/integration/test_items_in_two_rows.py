"""An item that is in two rows of the queue, both of them in workers' hands: it is done once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_cronlock import Run

from ..support.bodies import Gate
from ..support.tasks import GivenUp, Redeliver, Row, records, rows, work
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

OUTSIDE = ["at_least_once", "at_most_once"]


def twice(world: World, gate: Gate, delivery: str) -> tuple[Row, Row]:
    """Defer an item in two rows, which workers take; it is held in its first call."""

    @world.cron.task("call", delivery=delivery, timeout="60s", attempts=3)
    def call(n: int) -> None:
        world.mark()
        if world.marks == 1:
            gate.hold()

    @world.cron.job
    def fan(run: Run) -> None:
        run.defer(call, n=1)
        run.defer_many(call, [{"n": 1}])

    world.run("fan")
    world.database.query("UPDATE procrastinate_jobs SET status = 'doing'")
    first, second = rows(world)
    return first, second


@pytest.mark.parametrize("delivery", ["once", *OUTSIDE])
def test_the_second_row_waits_for_the_first_ones_call(
    world: World, gate: Gate, delivery: str
) -> None:
    first, second = twice(world, gate, delivery)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, world, first)
        try:
            assert gate.entered.wait(60), working
            for attempts in (0, 1):
                with pytest.raises(Redeliver) as told:
                    work(world, second, attempts)
                assert told.value.wait
        finally:
            gate.open()
        assert working.result(60).done == 1
    assert work(world, second, 2).known == 1
    assert world.marks == 1
    assert records(world) == [("done", 1, False)]


@pytest.mark.parametrize("delivery", OUTSIDE)
def test_it_takes_over_once_the_first_row_is_in_nobodys_hands(
    world: World, gate: Gate, delivery: str
) -> None:
    gate.open()
    first, second = twice(world, gate, delivery)
    world.database.query(
        "INSERT INTO cronlock_item (key, namespace, task, state, attempts, in_doubt, instance,"
        " queue_row, started_at) SELECT concat('/', args->'origin'->>%s, '/call/', %s::text), '',"
        " 'call', 'started', 1, false, 'dead', id, now() FROM procrastinate_jobs WHERE id = %s",
        "scope",
        '{"n": 1}',
        first.id,
    )
    with pytest.raises(Redeliver):
        work(world, second)
    assert world.marks == 0

    world.database.query("UPDATE procrastinate_jobs SET status = 'todo' WHERE id = %s", first.id)

    if delivery == "at_most_once":
        with pytest.raises(GivenUp):
            work(world, second, 1)
        assert (world.marks, records(world)) == (0, [("doubt", 1, True)])
    else:
        assert work(world, second, 1).done == 1
        assert (world.marks, records(world)) == (1, [("done", 2, False)])
