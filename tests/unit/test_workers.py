"""How many runs a pool has connections for, and the threads that take them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from sqlalchemy import NullPool, Pool, QueuePool

from flask_cronlock.exceptions import ConfigError
from flask_cronlock.workers import Workers, count_workers


def pool(size: int, overflow: int) -> Pool:
    return QueuePool(creator(), pool_size=size, max_overflow=overflow)


def creator() -> Any:
    return lambda: None


@pytest.mark.parametrize(
    ("size", "overflow", "workers"), [(1, 1, 1), (2, 0, 1), (3, 2, 4), (5, 10, 8)]
)
def test_each_worker_has_a_connection_and_the_look_has_one(
    size: int, overflow: int, workers: int
) -> None:
    assert count_workers(pool(size, overflow), None) == workers


@pytest.mark.parametrize("unlimited", [pool(5, -1), pool(0, 5), NullPool(creator())])
def test_a_pool_without_a_limit_has_room_for_any_number(unlimited: Pool) -> None:
    assert count_workers(unlimited, None) == 8
    assert count_workers(unlimited, 500) == 500


def test_as_many_as_were_wanted_are_taken_up_to_the_last_connection() -> None:
    assert count_workers(pool(5, 10), 2) == 2
    assert count_workers(pool(5, 10), 14) == 14


@pytest.mark.parametrize(
    ("size", "overflow", "wanted", "needed"), [(5, 10, 15, 16), (1, 0, None, 2), (1, 0, 1, 2)]
)
def test_too_few_connections_are_refused_with_both_numbers_and_the_cure(
    size: int, overflow: int, wanted: int | None, needed: int
) -> None:
    with pytest.raises(ConfigError) as refused:
        count_workers(pool(size, overflow), wanted)
    words = str(refused.value)
    assert f"needs {needed} connections" in words
    assert f"the pool has {size + overflow}" in words
    assert "raise pool_size or max_overflow in SQLALCHEMY_ENGINE_OPTIONS" in words


@pytest.mark.parametrize("wanted", [0, -1])
def test_no_worker_at_all_is_refused(wanted: int) -> None:
    with pytest.raises(ConfigError, match="at least one worker"):
        count_workers(pool(5, 10), wanted)


def test_as_many_calls_as_there_are_workers_go_on_at_once() -> None:
    workers, meet = Workers(3), threading.Barrier(4)
    for _ in range(3):
        workers.submit(lambda: meet.wait(30))
    meet.wait(30)
    assert workers.close(30) == 0


def test_no_more_calls_go_on_than_there_are_workers() -> None:
    workers, going, most = Workers(2), [], []

    def call() -> None:
        going.append(1)
        most.append(len(going))
        time.sleep(0.01)
        going.pop()

    last = threading.Event()
    for _ in range(20):
        workers.submit(call)
    workers.submit(last.set)
    assert last.wait(30)
    assert workers.close(30) == 0
    assert len(most) == 20
    assert max(most) <= 2


def test_at_the_end_calls_that_go_on_are_finished_and_others_not_begun() -> None:
    workers, began, go_on, done = Workers(1), threading.Event(), threading.Event(), []

    def call() -> None:
        began.set()
        assert go_on.wait(30)
        done.append("first")

    workers.submit(call)
    workers.submit(lambda: done.append("second"))
    assert began.wait(30)
    closing = threading.Timer(0.1, go_on.set)
    closing.start()
    assert workers.close(30) == 0
    closing.join()
    assert done == ["first"]


def test_calls_that_outlast_their_grace_are_counted_and_left() -> None:
    workers, began, go_on = Workers(2), threading.Event(), threading.Event()

    def call() -> None:
        began.set()
        assert go_on.wait(30)

    workers.submit(call)
    assert began.wait(30)
    assert workers.close(0.05) == 1
    go_on.set()
