"""What a worker does with the rows it takes, and with itself when it is told to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import QueuePool

from flask_cronlock.cli import worker as command
from flask_cronlock.exceptions import ConfigError
from flask_cronlock.queue import heart, outage
from flask_cronlock.queue.connecting import Way, wait_for_way
from flask_cronlock.queue.worker import count_rows_at_once

from ..support.belts import away, hired
from ..support.bodies import Gate
from ..support.clocks import state_of
from ..support.databases import Database
from ..support.pgbouncer import PgBouncer
from ..support.processes import wait_until
from ..support.queue_workers import Workshop
from ..support.worlds import World

MakeWorld = Callable[..., World]


@pytest.fixture(autouse=True)
def all_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "flask_cronlock")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Procrastinate tell what it does in a worker's process."""
    for name in ("procrastinate", "procrastinate.worker", "psycopg.pool"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "level", logger.level)
        monkeypatch.setattr(logger, "filters", [*logger.filters])
    command.quieten_procrastinate()


@pytest.fixture
def queue(database: Database) -> Workshop:
    """The test's own database, for rows and what became of them."""
    return Workshop(database)


@pytest.fixture
def called(world: World, gate: Gate) -> list[str]:
    """Return the names that a task was called with, which the test lets go on."""
    called: list[str] = []

    @world.cron.task(delivery="at_least_once", key="name")
    def note(name: str, seconds: float) -> None:
        called.append(name)
        gate.hold()

    return called


def heartbeat(database: Database) -> Any:
    return database.value("SELECT max(last_heartbeat) FROM procrastinate_workers")


def test_the_signs_of_life_go_on_for_as_long_as_a_stopping_worker_has_work_in_hand(
    world: World,
    queue: Workshop,
    called: list[str],
    gate: Gate,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heart, "BEAT_EVERY", 0.2)
    queue.defer("note", "slow")
    with hired(world) as worker:
        assert gate.entered.wait(30)
        worker.worker.stop()
        wait_until(lambda: "rows in hand have" in caplog.text)
        for _ in range(4):
            last = heartbeat(queue.database)
            wait_until(lambda last=last: heartbeat(queue.database) > last, 10)
        gate.open()
        worker.ended.result(30)
    assert queue.rows() == {}
    assert heartbeat(queue.database) is None


def test_a_worker_ends_with_the_grace_and_says_what_it_cut_off(
    world: World,
    queue: Workshop,
    called: list[str],
    gate: Gate,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (row,) = queue.defer("note", "long")
    with hired(world, grace=timedelta(seconds=0.2)) as worker:
        assert gate.entered.wait(30)
        try:
            worker.end(15)
            assert "cut off 1 " in caplog.text
            assert queue.rows() == {row: "doing"}
        finally:
            gate.open()


def test_a_stop_takes_effect_between_the_items_of_a_row(
    world: World, queue: Workshop, called: list[str], gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    row = queue.defer_together("note", "one", "two", "three")
    with hired(world, count=1) as worker:
        assert gate.entered.wait(30)
        worker.worker.stop()
        wait_until(lambda: "rows in hand have" in caplog.text)
        gate.open()
        worker.ended.result(30)
    assert called == ["one"]
    assert queue.rows() == {row: "todo"}


def test_a_row_that_is_to_be_aborted_is_in_hand_until_its_call_has_ended(
    make_world: MakeWorld, queue: Workshop, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread cannot be ended, so the row must not be another worker's before."""
    caplog.set_level(logging.DEBUG, "procrastinate.worker")
    world = make_world(CRONLOCK_WORKER_URL=queue.database.url)

    @world.cron.task(delivery="at_least_once", key="name")
    def note(name: str, seconds: float) -> None:
        gate.hold()

    row = queue.defer_together("note", "one", "two")
    with hired(world) as worker:
        assert gate.entered.wait(30)
        queue.database.query("SELECT procrastinate_cancel_job_v1(%s, true, false)", row)
        wait_until(lambda: "Received a request to abort" in caplog.text)
        try:
            time.sleep(1)
            assert queue.rows() == {row: "doing"}
        finally:
            gate.open()
        wait_until(lambda: queue.rows() == {row: "failed"})
        worker.end()
    keys = queue.database.query("SELECT key FROM cronlock_item WHERE state = 'done'")
    assert [key.rpartition("/")[2] for (key,) in keys] == ["one"]


def test_a_row_of_a_task_that_no_code_here_has_is_put_back(
    world: World, queue: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    (row,) = queue.defer("newer", "item")
    with hired(world):
        wait_until(lambda: "; it is tried again in" in caplog.text)
        wait_until(lambda: queue.rows() == {row: "todo"})


@pytest.mark.usefixtures("quiet")
def test_a_row_that_was_given_up_is_kept_without_a_word_of_what_is_in_it(
    world: World, queue: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.task(key="name")
    def note(name: str, seconds: float) -> None:
        pass

    @world.cron.task("lose", delivery="at_most_once", key="name")
    def lose(name: str, seconds: float) -> None:
        raise TimeoutError

    (lost,) = queue.defer("lose", "key", seconds=12345.678)
    queue.defer("note", "key", seconds=12345.678)
    with hired(world):
        wait_until(lambda: queue.rows() == {lost: "failed"})
    assert f"row {lost}: " in caplog.text
    assert "12345.678" not in caplog.text


def test_a_worker_that_was_silent_for_minutes_is_not_taken_off_the_list(
    world: World, queue: Workshop
) -> None:
    """As all are after an outage; its rows would be nobody's."""
    silent = queue.database.value(
        "INSERT INTO procrastinate_workers (last_heartbeat)"
        " VALUES (now() - interval '10 min') RETURNING id"
    )
    newest = "SELECT coalesce(max(id), 0) FROM procrastinate_workers"
    with hired(world):
        wait_until(lambda: queue.database.value(newest) > silent)
        listed = queue.database.query("SELECT id FROM procrastinate_workers")
    assert (silent,) in listed


def test_a_worker_that_is_switched_off_takes_no_row(
    make_world: MakeWorld, queue: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(CRONLOCK_ENABLED=False)
    (row,) = queue.defer("note", "left")
    with hired(world) as worker:
        wait_until(lambda: "the worker takes no" in caplog.text)
        with pytest.raises(TimeoutError):
            worker.ended.result(2)
        worker.end()
    assert queue.rows() == {row: "todo"}


def test_behind_a_pooler_no_statement_is_a_prepared_one(
    make_world: MakeWorld, queue: Workshop, pgbouncer: PgBouncer, caplog: pytest.LogCaptureFixture
) -> None:
    """The same ones, many times, on any backend."""
    world = make_world(url=pgbouncer.url(queue.database))
    world.cron.task("note", key="name")(lambda name, seconds: None)
    queue.defer("note", *[f"item-{number:02}" for number in range(30)])
    with hired(world):
        wait_until(lambda: not queue.rows())
    assert "WARNING" not in caplog.text


def test_a_worker_that_begins_before_its_database_waits_for_it(
    world: World,
    database: Database,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "PAUSES", (0.1,))

    def find() -> Way:
        with world.app.app_context():
            return wait_for_way(state_of(world))

    with ThreadPoolExecutor(1) as pool:
        with away(database):
            way = pool.submit(find)
            wait_until(lambda: way.done() or "does not answer yet" in caplog.text)
        assert str(way.result(30)) == "polling each second"


def test_more_rows_at_once_than_connections_are_refused() -> None:
    pool = QueuePool(lambda: None, pool_size=3, max_overflow=2)  # type: ignore[arg-type]
    assert count_rows_at_once(pool, 5) == 5
    with pytest.raises(ConfigError, match="needs 6 connections, and the pool has 5"):
        count_rows_at_once(pool, 6)
