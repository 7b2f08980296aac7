"""A real Redis that keeps all in memory, as a broker; it can be gone for a while."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .programs import require

PACKAGES = ("celery", "rq", "redis")


class RedisServer:
    """Is at the same port whenever it is up, and has forgotten all whenever it was down."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._log = folder / "log"
        self._command = [program, *f"--bind 127.0.0.1 --port {self.port} --dir".split()]
        self._command += [str(folder), "--logfile", str(self._log), "--save", ""]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it is there."""
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as asked:
                asked.sendall(b"PING\r\n")
                if asked.recv(5) == b"+PONG":
                    return
            time.sleep(0.02)
        self.stop()
        pytest.fail(f"Redis did not start: {self._log.read_text() if self._log.exists() else ''}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def _free_port() -> int:
    """Choose a free port below those the kernel hands out: nobody gets it while Redis is down."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Run Redis, where it and the packages that talk to it are installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    require(
        not missing,
        "CRONLOCK_REQUIRE_REDIS",
        f"packages are missing: pip install {' '.join(missing)}",
    )
    program = require(
        shutil.which(os.environ.get("REDIS_SERVER") or "redis-server"),
        "CRONLOCK_REQUIRE_REDIS",
        "Redis is missing: apt-get install redis-server, or set REDIS_SERVER to its path",
    )
    with tempfile.TemporaryDirectory(prefix="cronlock-redis-") as folder:
        server = RedisServer(program, Path(folder))
        try:
            yield server
        finally:
            server.stop()
