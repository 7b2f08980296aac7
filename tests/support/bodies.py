"""A run whose body is held open until the test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from flask_cronlock import Outcome

from .worlds import World


class Gate:
    """A job's body waits in :meth:`hold` until :meth:`open`."""

    def __init__(self) -> None:
        self.entered, self._opened = threading.Event(), threading.Event()

    def hold(self) -> None:
        self.entered.set()
        assert self._opened.wait(60), "the test never let the body go on"

    def open(self) -> None:
        self._opened.set()


@contextmanager
def running(world: World, job: str, gate: Gate) -> Iterator[Future[Outcome]]:
    """Run *job*, whose body holds at *gate*, for as long as the block takes."""
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(world.run, job)
        try:
            assert gate.entered.wait(60), outcome
            yield outcome
        finally:
            gate.open()
