"""What a dead worker had in hand is put back, and what a live one has never is."""

from __future__ import annotations

import signal
import time

import pytest

from ..support.clock_processes import TRACEBACK
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.queue_workers import QUICK, Workshop

STALLED_AFTER = QUICK["heart.STALLED_AFTER"]
LOOK_EVERY = QUICK["keeper.LOOK_EVERY"]
LONG = STALLED_AFTER + 3 * LOOK_EVERY + 4
HOUR = 3600
NOT_ITS_OWN = "no longer in this worker's hands at its end"
ABORT = "SELECT procrastinate_cancel_job_v1(%s, true, false)"
ABORTED = "asked to abort it"


@pytest.fixture
def workshop(database: Database) -> Workshop:
    made = Workshop(database)
    made.set_up()
    return made


def test_what_a_killed_worker_had_in_hand_is_done_by_another(workshop: Workshop) -> None:
    with workshop.worker() as doomed:
        (row,) = workshop.defer("note", "long", seconds=HOUR)
        workshop.wait_for_begun("long")
        with workshop.worker() as other:
            doomed.end(signal.SIGKILL)
            workshop.shorten(row)
            workshop.wait_until_empty()
            assert other.end() == 0
            said = other.said()
    assert workshop.begun() == ["long"] * 2
    assert workshop.noted() == ["long"]
    assert (
        f"Task note, queue row {row} was put back: its worker has shown no sign of life.\n" in said
    )
    assert TRACEBACK not in said


def test_it_is_also_done_by_a_worker_that_starts_later(workshop: Workshop) -> None:
    with workshop.worker() as doomed:
        (row,) = workshop.defer("call", "long", queue="mail", seconds=HOUR)
        workshop.wait_for_begun("long")
        doomed.end(signal.SIGKILL)
    workshop.shorten(row)
    with workshop.worker() as other:
        workshop.wait_until_empty()
        assert other.end() == 0
    assert workshop.begun() == ["long"] * 2


def test_a_worker_that_drains_for_long_keeps_what_it_has_in_hand(workshop: Workshop) -> None:
    """Others begin meanwhile, and look for what dead ones have left."""
    with workshop.worker("--grace", "1h") as draining:
        workshop.defer("call", "long", queue="mail", seconds=LONG)
        workshop.wait_for_begun("long")
        draining.send(signal.SIGTERM)
        draining.wait_for("The worker stops: 1 queue rows in hand")
        with workshop.worker() as one, workshop.worker() as two:
            assert draining.popen.wait(LONG + 20) == 0
            assert one.end() == two.end() == 0
            assert "was put back" not in one.said() + two.said()
        assert draining.said().endswith("The worker stopped.\n")
    assert workshop.begun() == workshop.ended() == ["long"]
    assert workshop.rows() == {}


def test_a_worker_that_slept_does_not_end_what_another_one_took_over(workshop: Workshop) -> None:
    with workshop.worker() as sleepy:
        (row,) = workshop.defer("call", "shared", queue="mail", seconds=4)
        workshop.wait_for_begun("shared")
        sleepy.send(signal.SIGSTOP)
        workshop.lengthen(row, 12)
        with workshop.worker() as other:
            workshop.wait_for_begun("shared", 2)
            sleepy.send(signal.SIGCONT)
            workshop.wait_for_ended("shared", 1)
            sleepy.wait_for(f"queue row {row} was {NOT_ITS_OWN}.\n")
            assert workshop.rows() == {row: "doing"}
            workshop.wait_for_ended("shared", 2)
            workshop.wait_until_empty()
            assert other.end() == 0
            assert NOT_ITS_OWN not in other.said()
        workshop.defer("note", "next")
        workshop.wait_until_empty()
        assert sleepy.end() == 0
        assert TRACEBACK not in sleepy.said()
    assert workshop.noted() == ["next"]


def test_a_worker_that_was_taken_off_the_list_is_on_it_again_with_what_it_has(
    workshop: Workshop,
) -> None:
    with workshop.worker() as worker, workshop.worker("--queues", "default") as other:
        workshop.defer("call", "long", queue="mail", seconds=LONG)
        workshop.wait_for_begun("long")
        workshop.database.query("DELETE FROM procrastinate_workers")
        workshop.defer("note", "next")
        wait_until(lambda: workshop.noted() == ["next"])
        workshop.wait_until_empty(LONG + 20)
        assert worker.end() == other.end() == 0
        assert "was put back" not in worker.said() + other.said()
    assert workshop.begun("long") == ["long"]


def test_a_row_that_never_reached_its_worker_is_put_back(workshop: Workshop) -> None:
    """As when the answer to the fetching was lost."""
    with workshop.worker() as worker:
        workshop.defer("note", "first")
        workshop.wait_until_empty()
        (row,) = workshop.database.query(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, worker_id)"
            " SELECT 'cronlock.default', 'note', jsonb_build_object("
            "   'items', '[{\"name\": \"lost\"}]'::jsonb,"
            '   \'origin\', \'{"namespace": "", "scope": "tests/lost"}\'::jsonb),'
            " 'doing', max(id) FROM procrastinate_workers RETURNING id"
        )
        workshop.wait_until_empty()
        assert worker.end() == 0
        assert (
            f"queue row {row[0]} was put back: it had not reached this worker.\n" in worker.said()
        )
    assert workshop.noted() == ["first", "lost"]


def test_a_row_whose_worker_is_off_the_list_is_put_back(workshop: Workshop) -> None:
    with workshop.worker() as doomed:
        (row,) = workshop.defer("note", "long", seconds=HOUR)
        workshop.wait_for_begun("long")
        doomed.end(signal.SIGKILL)
    workshop.database.query("DELETE FROM procrastinate_workers")
    workshop.shorten(row)
    with workshop.worker() as other:
        workshop.wait_until_empty()
        assert other.end() == 0
        assert "was put back: its worker is gone.\n" in other.said()
    assert workshop.noted() == ["long"]


def test_a_task_that_only_a_newer_release_has_waits_for_its_worker(workshop: Workshop) -> None:
    times = {**QUICK, "retries.UNKNOWN_WAIT": 2}
    with workshop.worker(times=times) as older:
        (row,) = workshop.defer("newer", "item")
        older.wait_for(f"Task newer, queue row {row}: no module that is imported here registers it")
        time.sleep(3)
        assert set(workshop.rows()) == {row}
        assert set(workshop.rows().values()) <= {"todo", "doing"}
        with workshop.worker(times=times, NEWER_RELEASE="1"):
            workshop.wait_until_empty(120)
        assert older.end() == 0
        assert TRACEBACK not in older.said()
    assert workshop.noted() == ["item"]


def test_a_row_that_somebody_asked_to_abort_is_not_put_back(workshop: Workshop) -> None:
    row = workshop.defer_together("call", "first", "second", queue="mail", seconds=6)
    with workshop.worker() as worker:
        workshop.wait_for_begun("first")
        workshop.database.query(ABORT, row)
        worker.wait_for(f"Task call, queue row {row} has failed: somebody {ABORTED}.\n")
        assert worker.end() == 0
    assert workshop.begun() == ["first"]
    assert workshop.rows() == {row: "failed"}


def test_nor_is_one_whose_worker_died(workshop: Workshop) -> None:
    with workshop.worker() as doomed:
        (row,) = workshop.defer("note", "long", seconds=HOUR)
        workshop.wait_for_begun("long")
        doomed.end(signal.SIGKILL)
    workshop.database.query(ABORT, row)
    with workshop.worker() as other:
        other.wait_for(f"Task note, queue row {row} has failed, as somebody {ABORTED}: its worker")
        assert other.end() == 0
        assert "was put back" not in other.said()
    assert workshop.rows() == {row: "failed"}
