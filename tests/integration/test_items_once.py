"""An item whose effect is in the database: its record commits with the effect, or neither does."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from flask_cronlock import Item

from ..support.plays import Body, Play, nothing
from ..support.tasks import Redeliver, records, rows, work, work_to_the_end
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


def test_it_is_done_once_however_often_its_row_is_delivered(world: World, play: Play) -> None:
    row = play.deferred(nothing)
    assert work(world, row).done == 1
    for attempts in (0, 1, 5):
        assert (work(world, row, attempts).known, len(play.called)) == (1, 1)
    assert world.notes == ["000"]
    assert records(world) == [("done", 1, False)]
    assert records(world, "args") == [None]


def raise_after_it(item: Item, n: int) -> None:
    raise ValueError("after the effect")


def swallow_an_error_of_sql(item: Item, n: int) -> None:
    with suppress(Exception):
        item.session.execute(text("SELECT 1/0"))


def end_the_transaction_by_sqlalchemy(item: Item, n: int) -> None:
    item.session.connection().commit()


def leave(item: Item, n: int) -> None:
    raise SystemExit(1)


def take_too_long(item: Item, n: int) -> None:
    item.session.execute(text("SELECT pg_sleep(60)"))


def work_on_another_connection(item: Item, n: int) -> None:
    with item.session.get_bind().engine.connect() as other:
        other.execute(text("INSERT INTO note VALUES ('elsewhere')"))
        other.commit()


@pytest.mark.parametrize(
    "failure",
    [
        raise_after_it,
        swallow_an_error_of_sql,
        end_the_transaction_by_sqlalchemy,
        leave,
        take_too_long,
        work_on_another_connection,
    ],
)
def test_a_failure_keeps_neither_and_it_is_tried_again(
    world: World, play: Play, failure: Body
) -> None:
    row = play.deferred(failure, task="write-soon")
    with pytest.raises(Redeliver) as told:
        work(world, row)
    assert world.notes == []
    assert records(world) == [("waiting", 1, False)]
    assert told.value.wait == timedelta(seconds=30)

    play.body = nothing
    assert work(world, row, 1).done == 1
    assert world.notes == ["000"]
    assert records(world) == [("done", 2, False)]
    assert records(world, "error") == [None]


def test_an_item_that_always_fails_is_given_up_and_can_be_seen(world: World, play: Play) -> None:
    row = play.deferred(raise_after_it)
    assert "1 failed" in str(work_to_the_end(world, row))
    assert len(play.called) == 3
    assert world.notes == []
    [(state, attempts, error, args)] = records(world, "state, attempts, error, args")
    assert (state, attempts) == ("failed", 3)
    assert "after the effect" in error
    assert json.loads(args) == row.args
    # It is not taken up again.
    assert work(world, row, 7).known == 1
    assert len(play.called) == 3


def commit(item: Item, n: int) -> None:
    item.session.commit()
    item.session.execute(text("INSERT INTO note VALUES ('second')"))
    item.session.commit()


def roll_back(item: Item, n: int) -> None:
    item.session.rollback()
    item.session.execute(text("INSERT INTO note VALUES ('instead')"))


@pytest.mark.parametrize(
    ("body", "notes"),
    [(commit, ["000", "second"]), (roll_back, ["instead"])],
    ids=["commit", "rollback"],
)
def test_its_own_commit_and_rollback_are_its_own_business(
    world: World, play: Play, body: Body, notes: list[str]
) -> None:
    row = play.deferred(body)
    assert work(world, row).done == 1
    assert world.notes == notes
    assert records(world) == [("done", 1, False)]


def test_what_it_had_committed_goes_with_a_later_failure(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        commit(item, n)
        raise ValueError("after its own commit")

    row = play.deferred(body)
    with pytest.raises(Redeliver):
        work(world, row)
    assert world.notes == []


def raw(item: Item, statement: str) -> None:
    driver: Any = item.session.connection().connection.driver_connection
    driver.execute(statement)


@pytest.mark.parametrize(
    "statement", ["COMMIT", "COMMIT; BEGIN", "COMMIT; BEGIN; SAVEPOINT sa_savepoint_1"]
)
def test_a_raw_commit_keeps_the_record_with_the_effect(
    world: World, play: Play, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = play.deferred(lambda item, n: raw(item, statement))
    with suppress(Redeliver):
        work(world, row)
    assert "TransactionEnded" in caplog.text
    work_to_the_end(world, row, 1)
    assert world.notes == ["000"]
    assert len(play.called) == 1


def test_a_raw_rollback_keeps_neither(world: World, play: Play) -> None:
    row = play.deferred(lambda item, n: raw(item, "ROLLBACK"))
    with pytest.raises(Redeliver):
        work(world, row)
    assert world.notes == []
    assert records(world, "state") == ["waiting"]


def test_what_an_item_defers_is_kept_with_it(world: World, play: Play) -> None:
    def body(item: Item, n: int) -> None:
        world.cron.defer(item.session, "write", n=2)
        if item.attempt == 1:
            raise ValueError("after it was deferred")

    row = play.deferred(body)
    with pytest.raises(Redeliver):
        work(world, row)
    assert len(rows(world)) == 1
    assert work(world, row, 1).done == 1
    assert [later.items for later in rows(world)[1:]] == [[{"n": 2}]]


def test_items_of_other_rows_are_seen_only_when_they_are_kept(world: World, play: Play) -> None:
    seen: list[Any] = []
    row = play.deferred(lambda item, n: seen.append(records(world)))
    work(world, row)
    assert seen == [[]]


def test_time_is_the_databases_and_an_item_knows_what_is_left(world: World, play: Play) -> None:
    left: list[float] = []

    def body(item: Item, n: int) -> None:
        left.append(item.remaining.total_seconds())
        time.sleep(0.2)
        left.append(item.remaining.total_seconds())

    work(world, play.deferred(body))
    assert 0 < left[1] < left[0] <= 30
    assert left[0] - left[1] >= 0.2


def test_the_session_is_there_only_while_it_is_called(world: World, play: Play) -> None:
    items: list[Item] = []

    def body(item: Item, n: int) -> None:
        items.append(item)
        assert item.session is world.db.session()

    work(world, play.deferred(body))
    [item] = items
    assert (item.job, item.slot, item.attempt) == (None, None, 1)


def test_its_log_names_the_task_and_the_item(
    world: World, play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    keys: list[str] = []

    def body(item: Item, n: int) -> None:
        keys.append(item.key)
        item.log.warning("sent")

    work(world, play.deferred(body))
    [record] = [record for record in caplog.records if record.getMessage() == "sent"]
    assert (record.task, record.item) == ("write", keys[0])  # type: ignore[attr-defined]


def test_it_waits_for_locks_as_long_as_the_role_does(world: World, play: Play) -> None:
    waits: list[str | None] = []
    work(
        world,
        play.deferred(lambda item, n: waits.append(item.session.scalar(text("SHOW lock_timeout")))),
    )
    assert waits == ["0"]
