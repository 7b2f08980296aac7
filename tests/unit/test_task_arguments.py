"""A task's arguments are kept as JSON that gives back what was given."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Item
from flask_cronlock.exceptions import ArgumentError, DeferError
from flask_cronlock.queue.arguments import checked
from flask_cronlock.queue.task import Task

from ..support.values import Unspeakable, deep, endless


@pytest.fixture
def task() -> Task:
    cron = CronLock(SQLAlchemy())

    @cron.task
    def send(item: Item, user_id: object, kind: str = "digest") -> None: ...

    return cron.tasks.get(send)


@pytest.mark.parametrize(
    "value",
    [
        "Grüße \U0001f600",
        "",
        "\\u0000",
        "\\\\u0000",
        0,
        -(2**70),
        1.5,
        True,
        None,
        [],
        {},
        [1, "a", None, [True, {"a": {"b": [2.5]}}]],
        {"": {"a b": []}},
    ],
)
def test_what_json_gives_back_is_taken(task: Task, value: Any) -> None:
    assert checked(task, {"user_id": value}) == {"user_id": value}


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 5, tzinfo=UTC),
        date(2026, 1, 5),
        Decimal("1.5"),
        UUID(int=1),
        b"bytes",
        (1, 2),
        [(1, 2)],
        {1, 2},
        {1: 2},
        {"a": {None: 2}},
        float("nan"),
        [float("inf")],
        "a\0",
        {"a\0": 1},
        "\\\0",
        "\ud800",
        ["\udfff"],
        {"\ud800": 1},
        1j,
        object(),
        Unspeakable(),
        endless(),
        deep(),
        10**5000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_would_not_give_back_is_refused_with_the_cure(task: Task, value: Any) -> None:
    with pytest.raises(ArgumentError, match="task 'send', user_id=") as refused:
        checked(task, {"kind": "digest", "user_id": value})
    assert "a datetime by isoformat()" in str(refused.value)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "missing a required argument: 'user_id'"),
        ({"user_id": 1, "user": 2}, "unexpected keyword argument 'user'"),
        ({"user_id": 1, "item": 2}, "unexpected keyword argument 'item'"),
    ],
    ids=["missing", "superfluous", "item"],
)
def test_arguments_that_the_function_does_not_take_are_refused(
    task: Task, arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(DeferError, match="task 'send': ") as refused:
        checked(task, arguments)
    assert told in str(refused.value)


def test_a_task_of_any_arguments_takes_none_named_item_beside_the_item() -> None:
    cron = CronLock(SQLAlchemy())

    @cron.task
    def with_item(item: Item, **about: object) -> None: ...

    @cron.task
    def without(**about: object) -> None: ...

    with pytest.raises(DeferError, match="item"):
        checked(cron.tasks.get(with_item), {"item": 1})
    # There nothing else is named so, and it is one of any others.
    assert not cron.tasks.get(without).takes_item
    assert checked(cron.tasks.get(without), {"item": 1}) == {"item": 1}
