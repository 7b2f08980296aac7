"""What a process has open, which cuts are not to add to."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .processes import wait_until


def open_here() -> tuple[int, int]:
    """Return how many file descriptors and threads this process has."""
    gc.collect()
    return len(list(Path("/dev/fd").iterdir())), threading.active_count()


@contextmanager
def adding_nothing(look: Callable[[], object]) -> Iterator[None]:
    """See that *look* finds after the block, or soon after it, what it found before."""
    before = look()
    yield
    with suppress(AssertionError):
        wait_until(lambda: look() == before)
    assert look() == before
