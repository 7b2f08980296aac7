"""The memory of who defers: it does not grow with the number of rows that a statement gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from flask_cronlock import Run

from ..support.outcomes import LONG, value_of
from ..support.tasks import deferred
from ..support.worlds import World

FEW, MANY = 1_000, 30_000
ROOM = 200_000
"""Bytes by which the peak may vary; what is fetched for so many rows takes many times that."""


@pytest.fixture
def world(entered_world: World) -> World:
    entered_world.cron.task("send")(lambda n: None)
    return entered_world


def peak(work: Callable[[], object]) -> int:
    """Return how many bytes of Python's memory *work* took at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("batch", [500, 1])
def test_a_fan_out_in_one_statement_takes_as_much_for_many_as_for_few(
    world: World, batch: int
) -> None:
    count = FEW

    @world.cron.job("digest", every=LONG)
    def digest(run: Run) -> int:
        numbers = select(func.generate_series(1, count).label("n"))
        return run.defer_from("send", numbers, batch)

    def run() -> None:
        assert value_of(world.cron.run("digest", force=True)) == count

    run()
    few = peak(run)
    count = MANY
    assert peak(run) < few + ROOM
    assert len(deferred(world)) == FEW * 2 + MANY
