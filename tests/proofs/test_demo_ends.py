"""Whenever and however the demo ends: nothing of it stays behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ..support.demos import READY, copy_checkout, hurried, needs_proc, started


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return hurried(copy_checkout(tmp_path))


@needs_proc
@pytest.mark.parametrize(
    ("words", "number", "status"),
    [
        (READY, signal.SIGHUP, 128 + signal.SIGHUP),
        (READY, signal.SIGKILL, -signal.SIGKILL),
        ("heartbeat", signal.SIGTERM, 128 + signal.SIGTERM),
        ("heartbeat", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind(
    copy: Path, words: str, number: signal.Signals, status: int
) -> None:
    with started(checkout=copy) as demo:
        demo.read_until(words)
        for part in ("gunicorn", "cron worker", "sample_app.sink"):
            assert any(part in process for process in demo.processes())
        demo.process.send_signal(number)
        assert demo.ends() == status


@needs_proc
@pytest.mark.parametrize(
    ("words", "number", "status"),
    [
        ("subscribers with posts", signal.SIGINT, 128 + signal.SIGINT),
        ("subscribers with posts", signal.SIGKILL, -signal.SIGKILL),
        ("web.1", signal.SIGTERM, 128 + signal.SIGTERM),
        ("web.1", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind_by_a_demo_that_was_still_starting(
    words: str, number: signal.Signals, status: int
) -> None:
    with started() as demo:
        demo.read_until(words)
        demo.process.send_signal(number)
        assert demo.ends() == status
