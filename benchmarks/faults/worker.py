"""One worker process: it takes hits from a pipe, and tells its history what becomes of them."""

from __future__ import annotations

import json
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.history import Recorder

from .body import Body
from .hit import ByItself, Hit, Place, Tool
from .tools import TOOLS

THREADS = 8


class Worker:
    """A tool, and the history it is watched by."""

    def __init__(self, place: Place) -> None:
        self.entry = next(entry for entry in TOOLS if entry.key == place.tool)
        self.recorder = Recorder(place.history, place.who)
        self.tool: Tool = self.entry.make(place, Body(self.recorder))

    def take(self, hit: Hit) -> None:
        """Fire, and answer whoever asked; a tool that keeps the time itself answers nobody."""
        self.recorder.write("hit", hit.job, hit.slot)
        try:
            answer = self.tool.fire(hit)
        except Exception:
            traceback.print_exc()
            answer = "failed"
        if not self.entry.keeps_time:
            self.recorder.write("answer", hit.job, hit.slot, hit.run, answer)

    def work(self) -> None:
        """Take what comes through the pipe until it ends, each in a thread, as a server does.

        The first line is the time of the first slot.
        """
        print("ready", flush=True)
        if not (began := sys.stdin.readline()):
            return
        if isinstance(self.tool, ByItself):
            self.tool.start(float(began), self.take)
        with ThreadPoolExecutor(THREADS) as threads:
            for line in sys.stdin:
                threads.submit(self.take, Hit(*line.split()))


if __name__ == "__main__":
    Worker(Place(**json.loads(sys.argv[1]))).work()
    # All is written; to take the interpreter apart takes seconds on a busy machine.
    os._exit(0)
