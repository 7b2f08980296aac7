"""The workers of one trial: started, hit, killed and frozen."""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from .hit import Place, numbered

ROOT = Path(__file__).parents[2]
START = 60
"""Seconds a busy machine may take to start a worker."""
END = 15
"""Seconds the workers may take to end what they are at."""


class Worker:
    """One process, and the next one in its place when it was killed."""

    def __init__(self, place: Place, log: Path) -> None:
        self.place, self.log = place, log
        self.began: float | None = None
        """The time of the first slot, once it is known."""
        self._lives = 0
        self.start()

    def start(self) -> None:
        self._lives += 1
        self.name = f"{self.place.who}.{self._lives}"
        self.ready, self.frozen_until = False, 0.0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "benchmarks.faults.worker"),
                    replace(self.place, who=self.name).told(),
                ],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def look(self) -> bool:
        """Tell whether it has come up; whoever hits one that has not, hits nobody."""
        assert self.process.stdout
        if not self.ready and select.select([self.process.stdout], [], [], 0)[0]:
            self.ready = self.process.stdout.readline() == b"ready\n"
            if self.ready and self.began is not None:
                self._say(str(self.began))
        return self.ready

    def begin(self, at: float) -> None:
        self.began = at
        self._say(str(at))

    def hit(self, slot: int) -> None:
        if self.look():
            self._say(" ".join(numbered(slot)))

    def _say(self, line: str) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def freeze(self, until: float) -> None:
        self.frozen_until = until
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.frozen_until = 0
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def hear_no_more(self) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


class Crew:
    """All workers of a trial."""

    def __init__(self, place: Place, workers: int, log: Path) -> None:
        self.workers = [Worker(replace(place, who=f"w{n}"), log) for n in range(workers)]

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()

    def begin(self, head_start: float) -> None:
        """Wait until all are up, and tell them when the first slot will be."""
        until = time.monotonic() + START
        while len(self.able()) < len(self.workers):
            ended = any(worker.process.poll() is not None for worker in self.workers)
            if ended or time.monotonic() > until:
                raise RuntimeError(f"a worker did not start:\n{self.workers[0].log.read_text()}")
            time.sleep(0.02)
        for worker in self.workers:
            worker.begin(time.time() + head_start)

    def able(self) -> list[Worker]:
        """Return those who are up and not frozen."""
        return [worker for worker in self.workers if worker.look() and not worker.frozen_until]

    def thaw_by(self, moment: float) -> None:
        for worker in self.workers:
            if 0 < worker.frozen_until <= moment:
                worker.thaw()

    def end(self) -> None:
        """Let all end what they are at, but not for ever."""
        for worker in self.workers:
            worker.thaw()
            worker.hear_no_more()
        until = time.monotonic() + END
        for worker in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.1, until - time.monotonic()))
