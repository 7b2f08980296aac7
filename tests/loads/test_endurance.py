"""Many runs in one process leave nothing behind, and the check would see what was left."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ..endurance import Sample, what_grew

ROOT = Path(__file__).parents[2]
FLAT = Sample(
    runs=0, rss=70 << 20, blocks=300_000, fds=11, threads=1, connections=3, out=0, locks=1
)


def test_many_runs_leave_nothing_behind() -> None:
    command = [sys.executable, "-m", "tests.endurance", "--runs", "1000", "--every", "200"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Flat: nothing was left behind.\n")


@pytest.mark.parametrize("figure", ["fds", "threads", "connections", "out", "locks"])
def test_one_thing_left_behind_is_told(figure: str) -> None:
    last = replace(FLAT, runs=10_000, **{figure: getattr(FLAT, figure) + 1})

    (told,) = what_grew([FLAT, last], 0)

    assert told.startswith(f"{figure} grew by 1 ")


def test_one_object_left_behind_by_one_kind_of_run_in_ten_is_told() -> None:
    last = replace(FLAT, runs=10_000, blocks=FLAT.blocks + 1_000)

    (told,) = what_grew([FLAT, last], 0)

    assert told.startswith("blocks grew by 1,000 ")


def test_two_percent_of_memory_are_told() -> None:
    last = replace(FLAT, runs=10_000, rss=FLAT.rss + (2 << 20))

    (told,) = what_grew([FLAT, last], 0)

    assert told.startswith("rss grew by 2,097,152 ")


def test_what_grew_while_the_process_warmed_up_is_not_told() -> None:
    warm = replace(FLAT, runs=2_000, rss=FLAT.rss + (9 << 20), fds=20)

    assert what_grew([FLAT, warm, replace(warm, runs=10_000)], 2_000) == []
