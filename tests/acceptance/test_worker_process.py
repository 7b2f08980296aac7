"""``flask cron worker`` is a process: it calls what was deferred, and ends as it is told to."""

from __future__ import annotations

import re
import signal
import time

import pytest
from sqlalchemy import make_url

from ..support.clock_processes import TRACEBACK
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.queue_workers import QUICK, Workshop
from ..support.sites import SLACK

STOPS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
HOUR = 3600


@pytest.fixture
def workshop(database: Database) -> Workshop:
    made = Workshop(database)
    made.set_up()
    return made


def test_a_worker_calls_each_item_once_and_says_a_line_for_each_row(workshop: Workshop) -> None:
    names = [f"item-{number}" for number in range(12)]
    rows = workshop.defer("note", *names)
    with workshop.worker() as worker:
        workshop.wait_until_empty()
        assert worker.end() == 0
        said = worker.said()

    assert workshop.noted() == sorted(workshop.begun()) == sorted(names)
    assert TRACEBACK not in said
    assert "The worker began: queues cronlock.default, cronlock.mail; 4 at once; " in said
    assert "; polling each second.\n" in said
    told = re.findall(r"Task note, queue row (\d+): 1 done\.$", said, re.M)
    assert sorted(map(int, told)) == rows
    assert said.endswith("The worker stopped.\n")
    assert len(said.splitlines()) == 3 + len(rows)


@STOPS
def test_what_is_in_hand_ends_within_the_grace(workshop: Workshop, number: int) -> None:
    with workshop.worker() as worker:
        workshop.defer("note", "slow", seconds=3)
        workshop.wait_for_begun("slow")
        assert worker.end(number) == 0
        said = worker.said()

    assert workshop.noted() == workshop.begun() == ["slow"]
    assert workshop.rows() == {}
    assert "The worker stops: 1 queue rows in hand have 30s to end.\n" in said
    assert said.endswith("The worker stopped.\n")
    assert TRACEBACK not in said


@STOPS
def test_what_goes_on_after_the_grace_is_cut_off_and_another_worker_takes_it_up(
    workshop: Workshop, number: int
) -> None:
    with workshop.worker("--grace", "0.5s") as worker:
        (row,) = workshop.defer("note", "long", seconds=HOUR)
        workshop.wait_for_begun("long")
        begun = time.monotonic()
        assert worker.end(number, 0.5 + SLACK) == 0
        took, said = time.monotonic() - begun, worker.said()

    assert took >= 0.5
    assert said.endswith("cut off 1 queue rows, which others take up in a minute.\n")
    assert TRACEBACK not in said
    assert workshop.rows() == {row: "doing"}
    workshop.shorten(row)
    with workshop.worker():
        workshop.wait_until_empty()
    assert workshop.begun() == ["long"] * 2
    assert workshop.noted() == ["long"]


@STOPS
def test_a_second_signal_ends_a_worker_at_once(workshop: Workshop, number: int) -> None:
    with workshop.worker("--grace", "1h") as worker:
        workshop.defer("note", "long", seconds=HOUR)
        workshop.wait_for_begun("long")

        def gone() -> bool:
            worker.send(number)
            time.sleep(0.2)
            return worker.popen.poll() is not None

        wait_until(gone, SLACK)
        assert worker.popen.returncode == -number
        assert "The worker stopped" not in worker.said()
        assert TRACEBACK not in worker.said()


def test_a_worker_without_work_ends_at_once(workshop: Workshop) -> None:
    with workshop.worker() as worker:
        assert worker.end(signal.SIGTERM, SLACK) == 0
        assert worker.said().endswith("The worker stopped.\n")


def test_a_stop_takes_effect_between_the_items_of_a_row(workshop: Workshop) -> None:
    names = [f"item-{number}" for number in range(10)]
    workshop.defer_together("note", *names, seconds=0.5)
    with workshop.worker("--concurrency", "1") as worker:
        workshop.wait_for_begun("item-1")
        assert worker.end(signal.SIGTERM, 8) == 0
    done = workshop.noted()
    assert 1 <= len(done) < 10
    assert set(workshop.rows().values()) == {"todo"}

    with workshop.worker():
        workshop.wait_until_empty()
    assert workshop.noted() == sorted(workshop.ended()) == sorted(names)


def test_as_many_rows_are_in_hand_at_once_as_it_was_told(workshop: Workshop) -> None:
    """More than the threads that asyncio has by itself."""
    workshop.defer("call", *[f"call-{number}" for number in range(45)], queue="mail", seconds=HOUR)
    with workshop.worker("--concurrency", "40", POOL_SIZE="40"):
        wait_until(lambda: len(workshop.begun()) == 40, 40)
        time.sleep(1)
        assert len(workshop.begun()) == 40


def test_until_empty_ends_when_nothing_is_due(workshop: Workshop) -> None:
    names = [f"item-{number}" for number in range(6)]
    workshop.defer("note", *names, seconds=0.3)
    with workshop.worker("--until-empty", "--concurrency", "2") as worker:
        assert worker.popen.wait(40) == 0
        assert worker.said().endswith("The worker stopped.\n")
    assert workshop.noted() == names
    assert workshop.rows() == {}


def test_only_the_named_queues_are_worked_off(workshop: Workshop) -> None:
    (left,) = workshop.defer("note", "left")
    workshop.defer("call", "called", queue="mail")
    with workshop.worker("--queues", "mail", "--until-empty") as worker:
        assert worker.popen.wait(40) == 0
    assert workshop.begun() == ["called"]
    assert workshop.rows() == {left: "todo"}


def test_the_queues_of_another_namespace_are_left_alone(workshop: Workshop) -> None:
    (left,) = workshop.defer("note", "left")
    workshop.defer("note", "taken", queue="shop.default")
    with workshop.worker("--until-empty", NAMESPACE="shop") as worker:
        assert worker.popen.wait(40) == 0
        assert "queues shop.default, shop.mail;" in worker.said()
    assert workshop.begun() == ["taken"]
    assert workshop.rows() == {left: "todo"}


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--queues", "mial"], 2, "no task is on the queue 'mial'; there are default, mail"),
        (["--concurrency", "6"], 1, "needs 6 connections, and the pool has 5"),
        (["--concurrency", "0"], 1, "at least 1"),
        (["--grace", "soon"], 1, "grace='soon' is not a duration"),
    ],
)
def test_a_wrong_wish_is_refused_with_one_line(
    workshop: Workshop, options: list[str], status: int, words: str
) -> None:
    with workshop.worker(*options, begins=False) as worker:
        assert worker.popen.wait(40) == status
        said = worker.said()
    assert words in said
    assert TRACEBACK not in said


def test_a_worker_that_is_switched_off_takes_no_row(workshop: Workshop) -> None:
    (left,) = workshop.defer("note", "left")
    with workshop.worker(SWITCHED_OFF="1", times=QUICK) as worker:
        worker.wait_for("CRONLOCK_ENABLED is False, so the worker takes no queue row.")
        time.sleep(2)
        assert worker.end(signal.SIGTERM, SLACK) == 0
    assert workshop.rows() == {left: "todo"}


def test_a_worker_that_is_switched_off_finds_nothing_until_empty(workshop: Workshop) -> None:
    (left,) = workshop.defer("note", "left")
    with workshop.worker("--until-empty", SWITCHED_OFF="1") as worker:
        assert worker.popen.wait(40) == 0
        assert worker.said().endswith("The worker stopped.\n")
    assert workshop.rows() == {left: "todo"}


def test_a_worker_that_cannot_go_on_says_why_in_one_line_and_without_a_secret(
    workshop: Workshop,
) -> None:
    """Its queue has a function of another release, which names its column anew."""
    workshop.database.query(
        "DROP FUNCTION procrastinate_register_worker_v1;"
        " CREATE FUNCTION procrastinate_register_worker_v1() RETURNS TABLE (other bigint)"
        " LANGUAGE sql AS 'SELECT 1::bigint'"
    )
    url = make_url(workshop.database.url).set(password="worker_id")
    address = url.render_as_string(hide_password=False)
    with workshop.worker(begins=False, CRONLOCK_WORKER_URL=address) as worker:
        assert worker.popen.wait(40) == 1
        said = worker.said()
    assert said.endswith("Error: the worker failed: KeyError: '[secret]'\n")
    assert TRACEBACK not in said
