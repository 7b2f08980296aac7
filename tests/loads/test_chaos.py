"""Every slot runs once, and no two runs of a job overlap, while everything is killed and frozen.

CRONLOCK_CHAOS_SLOTS and CRONLOCK_CHAOS_SEED ask for more, or for another order of faults;
``python -m tests.chaos`` does the same outside of the suite.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ..chaos.faults import SHARES
from ..chaos.history import KINDS
from ..chaos.play import LEAST_FAULTS, play

SLOTS = int(os.environ.get("CRONLOCK_CHAOS_SLOTS", "200"))
SEED = int(os.environ.get("CRONLOCK_CHAOS_SEED", "1"))


def test_chaos_neither_loses_nor_doubles_a_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = play(tmp_path, SEED, SLOTS, instances=2, tell=lambda _: None)
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    assert report.good, f"{report}\nthe history is in {tmp_path}"
    assert set(report.faults) == set(SHARES)
    assert {event.kind for event in report.events} == set(KINDS)
    assert report.faults.total() >= LEAST_FAULTS
    assert report.answers["ran"] > 0
    assert report.answers["already ran"] > 0
    assert report.answers["already running"] > 0
