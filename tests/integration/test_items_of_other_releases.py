"""A row whose arguments another release's function takes: it waits, and no attempt is used up."""

from __future__ import annotations

import pytest

from flask_cronlock import Run
from flask_cronlock.queue.work import UnknownHere

from ..support.tasks import records, rows, work
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.mark.parametrize("delivery", ["once", "at_least_once", "at_most_once"])
def test_arguments_that_the_function_here_does_not_take_cost_no_attempt(
    world: World, delivery: str
) -> None:
    """The web processes are of a newer release, and so defer with one argument more."""
    options = {"delivery": delivery, "attempts": 1, "key": "n"}

    @world.cron.task("send", **options)
    def send(n: int) -> None:
        world.mark()

    @world.cron.job
    def fan(run: Run) -> None:
        run.defer_many(send, [{"n": n} for n in range(2)], batch=2)

    world.run("fan")
    world.database.query(
        "UPDATE procrastinate_jobs SET args = jsonb_set(args, '{items,1,lang}', '\"de\"')"
    )
    [row] = rows(world)

    with pytest.raises(UnknownHere, match="unexpected keyword argument 'lang'"):
        work(world, row)

    assert world.marks == 0
    assert records(world) == []
