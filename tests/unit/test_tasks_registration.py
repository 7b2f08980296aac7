"""What may be registered as a task, and how it is found again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Item
from flask_cronlock.exceptions import ConfigError, RegistrationError, UnknownTask
from flask_cronlock.queue.task import Delivery
from flask_cronlock.queue.tasks import queue_name


@pytest.fixture
def cron() -> CronLock:
    return CronLock(SQLAlchemy())


def send(user_id: int) -> None: ...


def send_with_item(item: Item, user_id: int) -> None: ...


def test_a_bare_decorator_names_the_task_after_the_function(cron: CronLock) -> None:
    assert cron.task(send_with_item) is send_with_item

    task = cron.tasks.get("send-with-item")
    assert task.function is send_with_item
    assert (task.queue, task.delivery, task.attempts) == ("default", Delivery.ONCE, 5)
    assert (task.backoff, task.timeout, task.key) == (timedelta(seconds=30), None, ())


def test_a_task_is_found_by_its_name_and_by_its_function(cron: CronLock) -> None:
    assert cron.task("digest", key="user_id")(send) is send
    assert cron.tasks.get("digest") is cron.tasks.get(send)
    assert "digest" in cron.tasks
    assert cron.tasks.get(send).key == ("user_id",)


@pytest.mark.parametrize("wanted", ["send", "", send_with_item, None, 3, []])
def test_what_is_no_task_is_not_found(cron: CronLock, wanted: object) -> None:
    cron.task("digest")(send)
    with pytest.raises(UnknownTask, match=r"@cron\.task"):
        cron.tasks.get(wanted)


def test_the_item_is_no_argument(cron: CronLock) -> None:
    cron.task(send)
    cron.task(send_with_item)
    assert [task.takes_item for task in cron.tasks] == [False, True]
    assert all(list(task.signature.parameters) == ["user_id"] for task in cron.tasks)


def test_a_name_is_taken_by_one_function(cron: CronLock) -> None:
    cron.task("digest")(send)
    cron.task("digest")(send)
    with pytest.raises(RegistrationError, match="'digest': the name is taken"):
        cron.task("digest")(send_with_item)


@pytest.mark.parametrize("name", ["Digest", "a/b", "-a", "", "a" * 64, "a\n"])
def test_a_wrong_name_is_refused(cron: CronLock, name: str) -> None:
    with pytest.raises(RegistrationError, match="is no task name"):
        cron.task(name)(send)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queue": "Mail"}, "queue='Mail'"),
        ({"queue": "a.b"}, "queue='a.b'"),
        ({"queue": "a" * 39}, "at most 38, and 40 with the namespace and a dot"),
        ({"queue": ""}, "queue="),
        ({"queue": None}, "queue=None"),
        ({"delivery": "twice"}, "give once, at_most_once, at_least_once"),
        ({"delivery": None}, "delivery=None"),
        ({"attempts": 0}, "give 1 to 100"),
        ({"attempts": 101}, "give 1 to 100"),
        ({"attempts": True}, "give 1 to 100"),
        ({"attempts": 2.0}, "give 1 to 100"),
        ({"backoff": "soon"}, "backoff"),
        ({"backoff": "0s"}, "backoff"),
        ({"timeout": "0s"}, "timeout"),
        ({"key": "user"}, "no argument 'user'"),
        ({"key": ["user_id", "user"]}, "no argument 'user'"),
        ({"key": "item"}, "no argument 'item'"),
        ({"key": 3}, "name one argument"),
        ({"key": [3]}, "name one argument"),
        ({"delivry": "once", "retries": 3}, "there is no option delivry=, retries=; "),
        ({"retries": 3}, "queue=, delivery=, attempts=, backoff=, timeout=, key="),
        ({"name": "send"}, "there is no option name=; after the name, which has none"),
        ({"function": send}, "there is no option function=; "),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    cron: CronLock, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(RegistrationError, match="Task 'send-with-item': ") as refused:
        cron.task(**options)(send_with_item)
    assert told in str(refused.value)
    assert list(cron.tasks) == []


def positional_only(user_id: int, /) -> None: ...


def any_number(*users: int) -> None: ...


async def later(user_id: int) -> None: ...


def one_by_one(user_id: int) -> Any:
    yield user_id


@pytest.mark.parametrize("function", [positional_only, any_number, later, one_by_one])
def test_a_function_that_cannot_be_called_by_name_and_at_once_is_refused(
    cron: CronLock, function: Callable[..., Any]
) -> None:
    with pytest.raises(RegistrationError):
        cron.task(function)
    assert list(cron.tasks) == []


def test_a_queue_has_forty_characters_with_its_namespace(cron: CronLock) -> None:
    cron.task(queue="a" * 31)(send)
    cron.task(queue="b" * 30)(send_with_item)
    assert queue_name("", "a" * 31) == "cronlock." + "a" * 31
    assert queue_name("shop", "c" * 35) == "shop." + "c" * 35
    with pytest.raises(ConfigError, match="longer than 40 characters"):
        cron.tasks.check_queues("namespaces")


def app_in(namespace: str | None) -> Flask:
    app = Flask("shop")
    app.config.update(SQLALCHEMY_DATABASE_URI="postgresql+psycopg://127.0.0.1:1/shop")
    app.config.update(CRONLOCK_NAMESPACE=namespace)
    return app


def set_up(cron: CronLock, namespace: str | None) -> None:
    app = app_in(namespace)
    cron.db.init_app(app)
    cron.init_app(app)


@pytest.mark.parametrize(("queue", "namespace"), [("a" * 32, None), ("a" * 31, "namespace")])
def test_a_queue_that_is_too_long_with_the_namespace_is_refused_at_set_up(
    cron: CronLock, queue: str, namespace: str | None
) -> None:
    cron.task(queue=queue)(send)
    with pytest.raises(ConfigError, match=r"longer than 40 characters: shorten CRONLOCK_NAMESPACE"):
        set_up(cron, namespace)


def test_so_is_a_namespace_that_leaves_no_room_for_the_default_queue(cron: CronLock) -> None:
    with pytest.raises(ConfigError, match=r"\.default' is longer .* CRONLOCK_NAMESPACE"):
        set_up(cron, "n" * 33)
    set_up(cron, "n" * 32)


def test_the_wait_doubles_with_each_failure_up_to_an_hour(cron: CronLock) -> None:
    cron.task(backoff="10m", attempts=100)(send)
    task = cron.tasks.get(send)
    waits = [task.wait_after(attempt) for attempt in (1, 2, 3, 4, 100)]
    assert waits == [timedelta(minutes=minutes) for minutes in (10, 20, 40, 60, 60)]
