"""Whatever a job returns, its run was a success."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from flask import Response

from flask_cronlock import Ran
from flask_cronlock.texts import LONGEST_VALUE

from ..support.outcomes import LONG, error_of
from ..support.values import Unspeakable, endless
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


class Silent(type):
    """What is asked of a class of this kind fails, but for what the interpreter itself asks."""

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("no words")

    def __hash__(cls) -> int:
        raise RuntimeError("no number")


class OfNoClass(metaclass=Silent):
    pass


VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "number": lambda: 3,
    "decimal": lambda: Decimal("1.1"),
    "datetime": lambda: datetime(2024, 1, 1, tzinfo=UTC),
    "set": lambda: {1},
    "bytes": lambda: b"\xff\0",
    "nul": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "generator": lambda: (item for item in ()),
    "nan": lambda: math.nan,
    "five-megabytes": lambda: "é" * 5_000_000,
    "endless": endless,
    "tuple": lambda: ("x", 500),
    "response": lambda: Response("x", 500),
    "huge-int": lambda: 10**5000,
    "unspeakable": Unspeakable,
    "unspeakable-class": lambda: OfNoClass(),
}


def test_every_value_ends_in_a_done_row_and_a_200_of_valid_json(world: World) -> None:
    for name, make in VALUES.items():
        world.cron.job(name, every=LONG)(make)

    for name in VALUES:
        answer = world.post(name)
        assert answer.status_code == 200, name
        assert len(answer.data) < 1024, name
        body = json.loads(answer.data)
        assert body["outcome"] == "ran", name
        kept = world.database.value("SELECT value FROM cronlock_run WHERE job = %s", name)
        assert json.loads(kept) == body["processed"], name
        assert len(kept) <= LONGEST_VALUE, name

    assert {(job, state) for job, _, state in world.runs()} == {(name, "done") for name in VALUES}


def test_the_outcome_has_the_value_itself(world: World) -> None:
    value = object()
    world.cron.job("digest", every=LONG)(lambda: value)
    assert world.run("digest").value is value  # type: ignore[union-attr]


def test_an_object_of_the_jobs_session_is_shown_too(world: World) -> None:
    class Person(world.db.Model):  # type: ignore[name-defined, misc]
        id = world.db.Column(world.db.Integer, primary_key=True)
        name = world.db.Column(world.db.Text)

        def __repr__(self) -> str:
            return self.name

    with world.app.app_context():
        world.db.create_all()

    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        person = Person(name="Ada")
        world.db.session.add(person)
        world.db.session.flush()
        return person

    answer = world.post("digest")
    assert (answer.status_code, answer.json["processed"]) == (200, "<Person>")


def test_a_coroutine_is_no_value(world: World) -> None:
    async def work() -> None: ...

    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        world.note("undone")
        return work()

    error = error_of(world.run("digest"))
    assert isinstance(error, TypeError)
    assert "asyncio.run()" in str(error)
    assert world.notes == []


def of_an_event_loop() -> Any:
    loop = asyncio.new_event_loop()
    try:
        return loop.create_future()
    finally:
        loop.close()


def failed() -> Any:
    future: Future[None] = Future()
    future.set_exception(ValueError())
    return future


class Awaited:
    def __await__(self) -> Any: ...


class Own(Future):  # type: ignore[type-arg]
    """A future of a library's own."""


@pytest.mark.parametrize("make", [Future, Own, failed, of_an_event_loop, Awaited])
def test_work_that_nobody_waited_for_is_no_value(world: World, make: Callable[[], Any]) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        world.note("undone")
        return make()

    error = error_of(world.run("digest"))
    assert isinstance(error, TypeError)
    assert "result()" in str(error)
    assert world.notes == []


def test_what_only_says_that_it_is_awaitable_is_a_value(world: World) -> None:
    class Never:
        __await__ = None

    world.cron.job("digest", every=LONG)(Never)
    assert isinstance(world.run("digest"), Ran)


def test_a_decorated_generator_function_has_failed_since_nobody_ran_its_body(world: World) -> None:
    def plainly(function: Any) -> Any:
        @functools.wraps(function)
        def call() -> Any:
            return function()

        return call

    @world.cron.job("digest", every=LONG)
    @plainly
    def digest() -> Any:
        world.note("never")
        yield 1

    assert "whose work nobody does" in str(error_of(world.run("digest")))
