"""A command that goes on in a process of its own, and its log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .processes import wait_until


@dataclass
class Process:
    """A command that goes on, and its log."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, words: str, seconds: float = 30) -> None:
        """Wait until it has said *words*; fail when it ends before."""

        def heard() -> bool:
            if words in self.said():
                return True
            assert self.popen.poll() is None, self.said()
            return False

        wait_until(heard, seconds)

    def send(self, number: int) -> None:
        self.popen.send_signal(number)

    def end(self, number: int = signal.SIGTERM, seconds: float = 40) -> int:
        """Send it a signal, and return the status that it ends with."""
        self.popen.send_signal(number)
        return self.popen.wait(seconds)


@contextmanager
def logged(
    command: Sequence[str], log: Path, cwd: Path, env: Mapping[str, str]
) -> Iterator[Process]:
    """Run *command* until the end of the block; then it is killed, with all that it started."""
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Process(popen, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)
        popen.wait(10)
