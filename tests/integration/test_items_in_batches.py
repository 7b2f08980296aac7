"""A row of many items: each has its own record, and its own failure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Item
from flask_cronlock.queue.desk import Desk
from flask_cronlock.queue.origin import Origin
from flask_cronlock.state import this_state

from ..support.plays import Body, Play, named, nothing
from ..support.tasks import GivenUp, Redeliver, Row, records, work, work_to_the_end
from ..support.worlds import World


@pytest.fixture(scope="module")
def shared(module_world: World) -> Play:
    return Play(module_world)


@pytest.fixture
def play(shared: Play) -> Play:
    return shared.anew()


@pytest.fixture
def world(play: Play) -> World:
    return play.world


def test_all_of_a_row_are_done_in_one_transaction(world: World, play: Play) -> None:
    row = play.deferred(nothing, 500)
    assert work(world, row).done == 500
    assert world.notes == named(range(500))
    assert set(records(world)) == {("done", 1, False)}
    assert world.database.value("SELECT count(DISTINCT xmin::text) FROM cronlock_item") == 1
    assert work(world, row, 1).known == 500
    assert play.called == list(range(500))


def failing(number: int) -> Body:
    def body(item: Item, n: int) -> None:
        if n == number:
            raise ValueError("this one")

    return body


@pytest.mark.parametrize(("number", "count"), [(0, 30), (7, 500), (29, 30)])
def test_one_that_fails_leaves_the_others_done(
    world: World, play: Play, number: int, count: int
) -> None:
    row = play.deferred(failing(number), count)
    with pytest.raises(Redeliver):
        work(world, row)
    others = [n for n in range(count) if n != number]
    assert world.notes == named(others)
    assert sorted(records(world, "state")) == ["done"] * (count - 1) + ["waiting"]


def test_a_row_that_is_tried_again_calls_only_what_is_not_done(world: World, play: Play) -> None:
    row = play.deferred(failing(7), 30)
    with pytest.raises(Redeliver):
        work(world, row)
    play.called.clear()
    with pytest.raises(Redeliver):
        work(world, row, 1)
    assert play.called == [7]

    play.body = lambda item, n: None
    tally = work(world, row, 2)
    assert (tally.done, tally.known) == (1, 29)
    assert world.notes == named(range(30))
    assert records(world).count(("done", 3, False)) == 1


def test_one_that_always_fails_is_parked_and_the_others_are_done(world: World, play: Play) -> None:
    row = play.deferred(failing(7), 20)
    assert isinstance(work_to_the_end(world, row), GivenUp)
    assert sorted(records(world, "state")) == ["done"] * 19 + ["failed"]
    assert records(world).count(("failed", 3, False)) == 1
    assert len(world.notes) == 19


def test_its_own_rollback_undoes_the_item_alone(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        if n == 7:
            item.session.rollback()

    row = play.deferred(body, 20)
    assert work(world, row).done == 20
    assert world.notes == named([n for n in range(20) if n != 7])
    assert play.called == list(range(20))


def test_a_swallowed_error_of_sql_undoes_the_item_alone(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        if n == 7:
            with suppress(Exception):
                item.session.execute(text("SELECT 1/0"))

    row = play.deferred(body, 20)
    with pytest.raises(Redeliver):
        work(world, row)
    assert world.notes == named([n for n in range(20) if n != 7])


@pytest.mark.parametrize("statement", ["COMMIT", "COMMIT; BEGIN", "COMMIT; BEGIN; SAVEPOINT a"])
def test_a_raw_commit_of_one_loses_none_and_repeats_none(
    world: World, play: Play, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    def body(item: Item, n: int) -> None:
        if n == 7:
            driver: Any = item.session.connection().connection.driver_connection
            driver.execute(statement)

    row = play.deferred(body, 20)
    work_to_the_end(world, row)
    assert world.notes == named(range(20))
    assert set(records(world, "state")) == {"done"}
    assert play.called == [*range(20)]
    [told] = [r for r in caplog.records if "TransactionEnded" in r.getMessage()]
    assert told.item.endswith('/write/{"n": 7}')  # type: ignore[attr-defined]


def test_none_ends_the_transaction_of_all_by_sqlalchemy(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        if n == 7:
            item.session.connection().commit()

    row = play.deferred(body, 20)
    with pytest.raises(Redeliver):
        work(world, row)
    assert world.notes == named([n for n in range(20) if n != 7])
    assert sorted(records(world, "state")) == ["done"] * 19 + ["waiting"]


def test_objects_of_one_item_are_not_flushed_with_the_next(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        seen.append(len(item.session.identity_map))
        objects.append(world.note_class(text=f"of {n}"))
        item.session.add(objects[-1])
        if n == 2:
            item.session.rollback()

    seen: list[int] = []
    objects: list[object] = []
    row = play.deferred(body, 5)
    assert work(world, row).done == 5
    assert seen == [0] * 5
    assert "of 2" not in world.notes
    assert [text for text in world.notes if text.startswith("of")] == [
        "of 0",
        "of 1",
        "of 3",
        "of 4",
    ]


def test_a_worker_that_is_to_end_puts_back_what_it_has_not_begun(world: World, play: Play) -> None:
    row = play.deferred(nothing, 20)
    with pytest.raises(Redeliver) as told:
        work(world, row, stopping=lambda: len(play.called) == 7)
    assert told.value.wait is None
    assert world.notes == named(range(7))
    assert records(world) == [("done", 1, False)] * 7

    assert work(world, row, 1).done == 13
    assert play.called == list(range(20))


def test_a_worker_that_is_to_end_at_once_begins_none(world: World, play: Play) -> None:
    row = play.deferred(nothing, 20)
    with pytest.raises(Redeliver):
        work(world, row, stopping=lambda: True)
    assert (play.called, records(world)) == ([], [])


def test_many_that_take_longer_than_one_may_are_done_in_several_transactions(
    world: World, play: Play
) -> None:
    def pause(item: Item, n: int) -> None:
        item.session.execute(text("SELECT pg_sleep(0.5)"))

    row = play.deferred(pause, 6, "write-soon")
    assert work(world, row).done == 6
    assert play.called == list(range(6))
    assert world.database.value("SELECT count(DISTINCT xmin::text) FROM cronlock_item") > 1


def test_one_that_is_twice_in_a_row_is_done_once(world: World, play: Play) -> None:
    row = play.deferred(nothing, 3)
    twice = Row(row.id, row.queue, row.task, {**row.args, "items": row.items * 2})
    assert work(world, twice).done == 3
    assert play.called == [0, 1, 2]


def test_they_wait_for_locks_as_long_as_the_role_does(world: World, play: Play) -> None:
    waits: list[str | None] = []
    show = text("SHOW lock_timeout")
    row = play.deferred(lambda item, n: waits.append(item.session.scalar(show)), 2)
    work(world, row)
    assert waits == ["0", "0"]


def test_claims_of_another_transaction_are_not_given_back(world: World, play: Play) -> None:
    row = play.deferred(nothing, 3)
    work(world, row)
    with world.app.app_context():
        state = this_state()
        task = state.tasks.get("write")
        origin = Origin.from_json(row.args["origin"])
        items = [Item.of(task, origin, arguments) for arguments in row.items]
        desk = Desk(world.app, state, task, row.id)
        desk.give_back(items, xid="3")
        assert len(records(world)) == 3
        desk.give_back(
            items, xid=world.database.value("SELECT xmin::text FROM cronlock_item LIMIT 1")
        )
    assert records(world) == []
