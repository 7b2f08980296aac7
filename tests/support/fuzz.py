"""How many hostile cases are tried, and what none of them may leave behind."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from flask_cronlock import CronLockError

from .worlds import World

MANY = int(os.environ.get("CRONLOCK_FUZZ_EXAMPLES", "0"))
"""Set it to try that many, others each time; else they are few, and the same each time."""


LONGEST_MESSAGE = 400


def number_of_cases(few: int) -> int:
    return MANY or few


def seed() -> int | None:
    """Return what a generator of random cases begins with."""
    return None if MANY else 2026


def cases(few: int) -> Callable[[Any], Any]:
    """Let hypothesis try *few* examples."""
    return settings(
        max_examples=number_of_cases(few),
        derandomize=not MANY,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def refused_briefly(error: CronLockError, words: str) -> None:
    """Check that what was refused is told with these words, and in few."""
    assert words in str(error)
    assert len(str(error)) < LONGEST_MESSAGE


def _held() -> tuple[int, int]:
    """Return how many files and threads this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


@contextmanager
def nothing_left(world: World, run: Callable[[], object]) -> Iterator[None]:
    """Check that after the block all is as before, and that a *run* is still one."""
    run()
    before = _held()
    yield
    assert _held() == before
    with world.app.app_context():
        assert world.db.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert world.database.advisory_locks() == 0
    marks = world.marks
    run()
    assert world.marks == marks + 1
