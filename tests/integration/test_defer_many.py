"""Many calls: in rows of many items each, at a memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flask_cronlock import Run
from flask_cronlock.exceptions import ArgumentError

from ..support.outcomes import LONG, error_of, value_of
from ..support.tasks import deferred, rows
from ..support.worlds import World

MANY = 25_000


@pytest.fixture
def world(entered_world: World) -> World:
    entered_world.cron.task("send")(lambda n, text="": None)
    return entered_world


def numbers(count: int, **more: Any) -> Iterator[dict[str, Any]]:
    return ({"n": n, **more} for n in range(count))


@pytest.mark.parametrize(
    ("batch", "sizes"),
    [
        (1, [1] * 2_500),
        (3, [3] * 833 + [1]),
        (500, [500] * 5),
        (1_000, [1_000, 1_000, 500]),
        (2_499, [2_499, 1]),
        (10_000, [2_500]),
    ],
)
def test_each_is_in_one_row_and_the_rows_are_full(
    world: World, batch: int, sizes: list[int]
) -> None:
    session = world.db.session()
    assert world.cron.defer_many(session, "send", numbers(2_500), batch) == 2_500
    session.commit()
    found = rows(world)
    assert sorted((len(row.items) for row in found), reverse=True) == sizes
    assert [item["n"] for row in found for item in row.items] == list(range(2_500))


def test_none_at_all_is_nothing(world: World) -> None:
    session = world.db.session()
    assert world.cron.defer_many(session, "send", []) == 0
    assert world.cron.defer_many(session, "send", iter(()), batch=500) == 0
    session.commit()
    assert rows(world) == []


class Counted(dict[str, Any]):
    """One of the items: how many of them there are at a time is counted."""

    alive = most = 0

    def __init__(self, n: int) -> None:
        super().__init__(n=n)
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self) -> None:
        Counted.alive -= 1


def test_memory_does_not_grow_with_their_number(world: World) -> None:
    session = world.db.session()
    items = (Counted(n) for n in range(MANY))
    assert world.cron.defer_many(session, "send", items, batch=500) == MANY
    session.commit()
    assert len(rows(world)) == MANY / 500
    assert Counted.most < 3_000


def test_a_job_in_which_one_is_refused_defers_none(world: World) -> None:
    @world.cron.job("digest-of-many", every=LONG)
    def digest(run: Run) -> int:
        world.note("stamped")
        return run.defer_many("send", [*numbers(bad), {"n": object()}, *numbers(3)], batch=500)

    bad = 2_700
    assert isinstance(error_of(world.run("digest-of-many")), ArgumentError)
    assert rows(world) == []
    assert world.notes == []

    bad = 0
    assert isinstance(error_of(world.run("digest-of-many")), ArgumentError)


def test_a_view_that_goes_on_after_one_was_refused_defers_none(world: World) -> None:
    session = world.db.session()
    world.note("before")
    with pytest.raises(ArgumentError):
        world.cron.defer_many(session, "send", [*numbers(2_700), {"n": object()}])
    session.commit()
    assert rows(world) == []
    assert world.notes == ["before"]


def test_an_error_of_the_generator_is_its_own(world: World) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from numbers(2_700)
        raise LookupError("no more")

    session = world.db.session()
    with pytest.raises(LookupError, match="no more"):
        world.cron.defer_many(session, "send", broken())
    session.commit()
    assert rows(world) == []


def test_a_generator_may_read_in_the_same_session(world: World) -> None:
    world.database.query("INSERT INTO note SELECT i::text FROM generate_series(1, 2500) AS i")

    @world.cron.job("digest-of-a-stream", every=LONG)
    def digest(run: Run) -> int:
        found = run.session.execute(world.db.text("SELECT text FROM note")).yield_per(100)
        return run.defer_many("send", ({"n": text} for (text,) in found))

    assert value_of(world.run("digest-of-a-stream")) == 2_500
    assert len(deferred(world)) == 2_500


def test_a_generator_may_commit_in_a_job(world: World) -> None:
    @world.cron.job("digest-of-commits", every=LONG)
    def digest(run: Run) -> int:
        def committing() -> Iterator[dict[str, Any]]:
            for item in numbers(2_500):
                if item["n"] in (500, 1_500):
                    run.session.commit()
                yield item

        return run.defer_many("send", committing())

    assert value_of(world.run("digest-of-commits")) == 2_500
    assert len(deferred(world)) == 2_500
