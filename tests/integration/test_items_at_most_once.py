"""At most once: an item is marked before it is called, and what is not known is in doubt."""

from __future__ import annotations

import pytest

from flask_cronlock import NotDone

from ..support.plays import Calls
from ..support.tasks import (
    GivenUp,
    Redeliver,
    Tally,
    in_a_process,
    records,
    rows,
    work,
    work_to_the_end,
)
from ..support.worlds import World


@pytest.fixture(scope="module")
def shared(module_world: World) -> Calls:
    return Calls(module_world, "at_most_once")


@pytest.fixture
def play(shared: Calls) -> Calls:
    return shared.anew()


@pytest.fixture
def world(play: Calls) -> World:
    return play.world


def test_an_attempt_is_counted_and_committed_before_the_call(world: World, play: Calls) -> None:
    work(world, play.deferred([None]))
    assert play.seen == [("started", 1, False)]
    assert records(world) == [("done", 1, False)]


def test_it_is_called_once_however_often_its_row_is_delivered(world: World, play: Calls) -> None:
    row = play.deferred([None])
    for attempts in range(3):
        work(world, row, attempts)
    assert world.marks == 1


@pytest.mark.parametrize("error", [ValueError("read timeout"), SystemExit(1)])
def test_an_error_leaves_it_in_doubt_and_it_is_never_called_again(
    world: World, play: Calls, error: BaseException
) -> None:
    row = play.deferred([error])
    with pytest.raises(GivenUp, match="1 in doubt"):
        work(world, row)
    assert records(world) == [("doubt", 1, True)]
    work(world, row, 1)
    assert world.marks == 1
    assert records(world) == [("doubt", 1, True)]


def test_what_was_surely_not_done_is_tried_again(world: World, play: Calls) -> None:
    row = play.deferred([NotDone("refused"), None])
    with pytest.raises(Redeliver) as told:
        work(world, row)
    assert told.value.wait is not None
    assert records(world) == [("waiting", 1, False)]
    assert work(world, row, 1).done == 1
    assert records(world) == [("done", 2, False)]


def test_what_was_never_done_has_failed_and_is_in_no_doubt(world: World, play: Calls) -> None:
    row = play.deferred([NotDone("refused")] * 3)
    assert "1 failed" in str(work_to_the_end(world, row))
    assert world.marks == 3
    assert records(world) == [("failed", 3, False)]


def test_a_doubt_after_what_was_surely_not_done(world: World, play: Calls) -> None:
    row = play.deferred([NotDone("refused"), ValueError("read timeout")])
    assert "1 in doubt" in str(work_to_the_end(world, row))
    assert world.marks == 2
    assert records(world) == [("doubt", 2, True)]


def test_one_in_doubt_does_not_hold_up_the_others(world: World, play: Calls) -> None:
    row = play.deferred([None, ValueError("read timeout"), None], count=3)
    with pytest.raises(GivenUp, match="2 done, 1 in doubt"):
        work(world, row)
    assert sorted(records(world, "state")) == ["done", "done", "doubt"]


def test_a_worker_that_was_killed_in_the_call_leaves_it_in_doubt(world: World) -> None:
    @world.cron.task("send-once", delivery="at_most_once", attempts=3)
    def again(n: int) -> None:
        world.mark("again")

    world.database.emptied()
    with world.app.app_context():
        world.cron.defer(world.db.session, again, n=1)
        world.db.session.commit()
    [row] = rows(world)

    assert in_a_process(world.database, "work", "send-once", 0) == -9
    assert records(world) == [("started", 1, False)]
    with pytest.raises(GivenUp, match="1 in doubt"):
        work(world, row, 1)
    assert world.marks == 1
    assert records(world, "error") == ["its worker died in attempt 1"]
    assert isinstance(work_to_the_end(world, row), Tally)
    assert world.marks == 1
