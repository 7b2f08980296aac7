"""What is raised in a task that is no Exception ends an attempt like anything else."""

from __future__ import annotations

import asyncio

import pytest

from flask_cronlock import Run

from ..support.tasks import GivenUp, records, rows, work_to_the_end
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


class Odd(BaseException):
    pass


@pytest.mark.parametrize("error", [Odd, asyncio.CancelledError, GeneratorExit, SystemExit])
@pytest.mark.parametrize(
    ("delivery", "calls", "state"),
    [("once", 2, "failed"), ("at_least_once", 2, "doubt"), ("at_most_once", 1, "doubt")],
)
def test_it_is_recorded_and_the_other_items_are_done(
    world: World, error: type[BaseException], delivery: str, calls: int, state: str
) -> None:
    called: list[int] = []

    @world.cron.task(delivery=delivery, attempts=2, key="n")
    def send(n: int) -> None:
        called.append(n)
        if n == 1:
            raise error("odd")

    @world.cron.job
    def fan(run: Run) -> None:
        run.defer_many(send, [{"n": n} for n in range(3)], batch=3)

    world.run("fan")
    [row] = rows(world)

    assert isinstance(work_to_the_end(world, row), GivenUp)

    found = records(world, "state, error")
    assert [told for told, _ in found] == ["done", state, "done"]
    assert found[1][1] == f"{error.__qualname__}: odd"
    together = delivery == "once"
    assert called.count(1) == calls + together
