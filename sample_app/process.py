"""One process of the application, and its log; it ends with whoever started it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
# Settings of the surrounding shell that would make this another process than the one described.
FOREIGN = (
    "CLOCK",
    "CRONLOCK_INSTANCE",
    "CRONLOCK_WORKER_URL",
    "CRON_SECRET",
    "DIGEST_EVERY",
    "GUNICORN_CMD_ARGS",
    "PORT",
    "SMTP_URL",
    "WEB_CONCURRENCY",
)


class NotReady(RuntimeError):
    """The process ended, or did not do its part in time; its log tells why."""


@dataclass(frozen=True)
class Process:
    """A running process; `process` is the lifeline that it hangs on."""

    name: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def read_log(self) -> str:
        """Return what it printed so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill all its processes at once, as a machine does that fails."""
        self.process.send_signal(signal.SIGUSR1)
        self.process.wait()


@contextmanager
def started(
    name: str,
    module: Sequence[str],
    settings: Mapping[str, str],
    listener: socket | None = None,
) -> Iterator[Process]:
    """Start `python -m MODULE …` with `settings` in its environment; end it on leaving, or with us.

    A `listener` is handed over, so that nobody can take its port in between.
    """
    ours = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sample_app.lifeline", sys.executable, "-m", *module],
            cwd=ROOT,
            env={**ours, **settings, "DYNO": name},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()] if listener else [],
            start_new_session=True,
        )
        if listener:
            listener.close()
        try:
            yield Process(name, process, log)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait()


def procfile(kind: str) -> list[str]:
    """Return the command of the Procfile's line for `kind`."""
    for line in (ROOT / "Procfile").read_text().splitlines():
        found, _, command = line.partition(":")
        if found == kind:
            return shlex.split(command)
    raise RuntimeError(f"The Procfile has no line that begins with `{kind}:`.")
