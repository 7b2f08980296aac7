"""A history is written by many processes, each for itself, and read as one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ..chaos.history import Event, Recorder, now, read

JOB = "report"
KILLED = """
import os, signal, sys
from tests.chaos.history import Recorder
recorder = Recorder(sys.argv[1], "web.1")
for number in range(100):
    recorder.write("step", detail=str(number))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def record(tmp_path: Path) -> Callable[[str], Recorder]:
    return lambda who: Recorder(tmp_path, who)


def test_a_history_is_read_in_order_over_all_its_files(
    tmp_path: Path, record: Callable[[str], Recorder]
) -> None:
    one, two = record("web.1/7"), record("client")
    one.write("end", JOB, "one", "a", at=3)
    two.write("answer", JOB, "one", "a", "ran", 200, at=4)
    one.write("begin", JOB, "one", "a", at=1)
    one.close()
    two.close()
    assert read(tmp_path) == [
        Event(1, "web.1/7", "begin", JOB, "one", "a"),
        Event(3, "web.1/7", "end", JOB, "one", "a"),
        Event(4, "client", "answer", JOB, "one", "a", "ran", 200),
    ]


def test_an_event_happens_now_unless_it_says_when(
    tmp_path: Path, record: Callable[[str], Recorder]
) -> None:
    recorder, before = record("client"), now()
    recorder.write("hit", JOB, "one")
    recorder.close()
    [event] = read(tmp_path)
    assert before <= event.at <= now()
    assert replace(event, at=0) == Event(0, "client", "hit", JOB, "one")


def test_a_torn_last_line_is_left_out_and_a_torn_line_before_it_is_not(
    tmp_path: Path, record: Callable[[str], Recorder]
) -> None:
    recorder = record("web.1")
    recorder.write("begin", JOB, "one", "a", at=1)
    recorder.close()
    path = tmp_path / "web.1.jsonl"
    with path.open("a") as file:
        file.write('{"at": 2, "who": "web')
    assert len(read(tmp_path)) == 1
    with path.open("a") as file:
        file.write("\n")
    with pytest.raises(ValueError, match="Unterminated"):
        read(tmp_path)


def test_a_killed_process_has_written_all_that_it_told(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], cwd=Path(__file__).parents[2]
    )
    assert process.returncode == -signal.SIGKILL
    assert [event.detail for event in read(tmp_path)] == [str(number) for number in range(100)]


def test_an_unknown_kind_is_refused(record: Callable[[str], Recorder]) -> None:
    recorder = record("web.1")
    with pytest.raises(AssertionError, match="began"):
        recorder.write("began")
    recorder.close()
