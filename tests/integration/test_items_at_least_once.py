"""At least once: an item is called again, a counted number of times, with the same key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from flask_cronlock import Item, NotDone

from ..support.plays import Calls, Errors
from ..support.tasks import (
    GivenUp,
    Redeliver,
    in_a_process,
    records,
    rows,
    work,
    work_to_the_end,
)
from ..support.tasks_app import ATTEMPTS
from ..support.worlds import World


@pytest.fixture(scope="module")
def shared(module_world: World) -> Calls:
    return Calls(module_world, "at_least_once")


@pytest.fixture
def play(shared: Calls) -> Calls:
    return shared.anew()


@pytest.fixture
def world(play: Calls) -> World:
    return play.world


def test_each_attempt_is_counted_and_committed_before_its_call(world: World, play: Calls) -> None:
    row = play.deferred([ValueError("read timeout"), NotDone("refused"), None])
    work_to_the_end(world, row)
    assert play.seen == [("started", 1, False), ("started", 2, True), ("started", 3, True)]
    assert [attempt for _, attempt in play.calls] == [1, 2, 3]
    assert len({token for token, _ in play.calls}) == 1
    assert records(world) == [("done", 3, False)]


def test_once_it_is_done_it_is_not_called_again(world: World, play: Calls) -> None:
    row = play.deferred([None])
    for attempts in range(3):
        work(world, row, attempts)
    assert len(play.calls) == 1


def test_the_waits_grow(world: World, play: Calls) -> None:
    row = play.deferred([ValueError()] * 3)
    waits = []
    for attempts in range(2):
        with pytest.raises(Redeliver) as told:
            work(world, row, attempts)
        assert told.value.wait is not None
        waits.append(told.value.wait.total_seconds())
    assert waits == [10, 20]


@pytest.mark.parametrize(
    ("errors", "state"),
    [
        ([ValueError()] * 3, "doubt"),
        ([ValueError(), NotDone(), NotDone()], "doubt"),
        ([NotDone(), NotDone(), ValueError()], "doubt"),
        ([NotDone()] * 3, "failed"),
    ],
    ids=["never known", "first not known", "last not known", "known"],
)
def test_what_is_given_up_is_in_doubt_unless_it_was_surely_never_done(
    world: World, play: Calls, errors: Errors, state: str
) -> None:
    row = play.deferred(errors)
    assert isinstance(work_to_the_end(world, row), GivenUp)
    assert len(play.calls) == 3
    assert records(world) == [(state, 3, state == "doubt")]
    work(world, row, 9)
    assert len(play.calls) == 3


def test_workers_that_are_killed_in_the_call_call_it_as_often_as_is_allowed(world: World) -> None:
    @world.cron.task("send-again", delivery="at_least_once", attempts=ATTEMPTS)
    def again(n: int) -> None:
        world.mark("again")

    world.database.emptied()
    with world.app.app_context():
        world.cron.defer(world.db.session, again, n=1)
        world.db.session.commit()
    [row] = rows(world)

    for attempts in range(ATTEMPTS):
        assert in_a_process(world.database, "work", "send-again", attempts) == -9
        assert records(world) == [("started", attempts + 1, attempts > 0)]
    with pytest.raises(GivenUp, match="1 in doubt"):
        work(world, row, ATTEMPTS)
    assert world.marks == ATTEMPTS
    assert records(world) == [("doubt", ATTEMPTS, True)]
    assert records(world, "error") == [f"its worker died in attempt {ATTEMPTS}"]


def test_after_one_that_was_killed_it_is_called_again_with_its_key(
    world: World, play: Calls
) -> None:
    row = play.deferred([None, None])
    work(world, row)
    # As it is when a worker dies between the call and its record.
    world.database.query("UPDATE cronlock_item SET state = 'started', finished_at = NULL")
    assert work(world, row, 1).done == 1
    assert [attempt for _, attempt in play.calls] == [1, 2]
    assert play.calls[0][0] == play.calls[1][0]


def test_what_a_call_writes_is_kept_with_its_end_or_it_has_failed(
    world: World, play: Calls
) -> None:
    @world.cron.task(delivery="at_least_once", attempts=2)
    def write(item: Item) -> None:
        world.note("sent")
        if item.attempt == 1:
            with suppress(DBAPIError):
                item.session.execute(text("SELECT 1/0"))

    with world.app.app_context():
        world.cron.defer(world.db.session, write)
        world.db.session.commit()
    [row] = rows(world)
    with pytest.raises(Redeliver):
        work(world, row)
    assert world.notes == []
    assert "TransactionAborted" in records(world, "error")[0]
    assert work(world, row, 1).done == 1
    assert world.notes == ["sent"]


def test_a_call_may_take_a_new_session_and_defer_more(world: World, play: Calls) -> None:
    @world.cron.task(delivery="at_least_once")
    def sending(n: int) -> None:
        world.db.session.remove()
        world.note("sent")
        if n:
            world.cron.defer(world.db.session, sending, n=n - 1)

    with world.app.app_context():
        world.cron.defer(world.db.session, sending, n=1)
        world.db.session.commit()
    for done in (1, 2):
        work(world, rows(world)[-1])
        assert world.notes == ["sent"] * done
        assert len(rows(world)) == 2


def test_a_session_that_begins_by_hand_only_is_committed_where_it_was_begun(
    make_world: Callable[..., World],
) -> None:
    world = make_world(db=SQLAlchemy(session_options={"autobegin": False}))

    @world.cron.task(delivery="at_least_once", attempts=1)
    def send(n: int) -> None:
        world.mark()

    with world.app.app_context(), world.db.session.begin():
        world.cron.defer(world.db.session, send, n=1)
    [row] = rows(world)

    assert work(world, row).done == 1
    assert world.marks == 1
