"""One instance of the application: the web command of the Procfile, on a free loopback port."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
READY_SECONDS = 30.0
REQUEST_SECONDS = 90.0
# Settings of the surrounding shell that would make this another instance than the one described.
FOREIGN = (
    "CLOCK",
    "CRONLOCK_INSTANCE",
    "CRON_SECRET",
    "DIGEST_EVERY",
    "GUNICORN_CMD_ARGS",
    "PORT",
    "WEB_CONCURRENCY",
)


class NotReady(RuntimeError):
    """The instance ended, or did not answer in time; its log tells why."""


@dataclass(frozen=True)
class Instance:
    """A running instance; it answers on `url`."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return status and body; proxies named in the environment are not asked."""
        connection = HTTPConnection(HOST, self.port, timeout=REQUEST_SECONDS)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        """Return when the health check answers 200; raise with the log if it never does."""
        deadline = time.monotonic() + READY_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.is_ready():
                return
            time.sleep(0.1)
        raise NotReady(f"{self.name} did not become ready:\n{self.read_log()}")

    def read_log(self) -> str:
        """Return what it printed so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill all its processes at once, as a machine does that fails."""
        self.process.send_signal(signal.SIGUSR1)
        self.process.wait()

    def is_ready(self) -> bool:
        try:
            return self.request("GET", "/healthz")[0] == 200
        except (OSError, HTTPException):
            return False


def running(
    name: str, workers: int, settings: Mapping[str, str]
) -> AbstractContextManager[Instance]:
    """Start an instance of the application as `DYNO=name`; see `serving`."""
    return serving(name, [*web_command(), f"--workers={workers}"], {**settings, "DYNO": name})


@contextmanager
def serving(name: str, gunicorn: Sequence[str], settings: Mapping[str, str]) -> Iterator[Instance]:
    """Start a gunicorn with `settings` in its environment; end it on leaving, or with us."""
    ours = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    with tempfile.TemporaryFile() as log, socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        # The listening socket is handed over, so nobody can take the port in between.
        command = [sys.executable, "-m", *gunicorn, f"--bind=fd://{listener.fileno()}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sample_app.lifeline", *command],
            cwd=ROOT,
            env={**ours, **settings},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        listener.close()
        try:
            yield Instance(name, port, process, log)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait()


def web_command() -> list[str]:
    """Return the command of the Procfile's `web` line."""
    for line in (ROOT / "Procfile").read_text().splitlines():
        kind, _, command = line.partition(":")
        if kind == "web":
            return shlex.split(command)
    raise RuntimeError("The Procfile has no line that begins with `web:`.")
