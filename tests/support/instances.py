"""Real instances: gunicorn processes, and single runs in processes of their own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .databases import Database
from .worlds import SECRET

ROOT = Path(__file__).parents[2]


@dataclass
class Answer:
    status: int
    body: dict[str, Any]
    seconds: float


def environment(database: Database, url: str | None = None, **extra: str) -> dict[str, str]:
    """Return the environment of an instance of ``jobs_app`` on *database*."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("PG")},
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": url or database.url,
        "PROBE_CONNINFO": database.conninfo,
        "CRON_SECRET": SECRET,
        **extra,
    }


@dataclass
class Instance:
    """A gunicorn master with its workers."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def post(self, job: str, timeout: float = 60) -> Answer:
        headers = {"Authorization": f"Bearer {SECRET}"}
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("POST", f"/api/cron/{job}", headers=headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        body = json.loads(text) if is_json and text else {"text": text.decode(errors="replace")}
        return Answer(response.status, body, time.monotonic() - begun)

    def workers(self) -> list[int]:
        """Return the pids of the workers now."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]


@contextmanager
def gunicorn(
    database: Database,
    *options: str,
    url: str | None = None,
    name: str = "web.1",
    target: str = "tests.support.jobs_app:app",
    **extra: str,
) -> Iterator[Instance]:
    """Run gunicorn on a free loopback port, two workers of four threads unless *options* say else.

    The socket is bound here and handed over, so that no other process can take the port.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    with tempfile.TemporaryDirectory(prefix="cronlock-web-") as folder, listener:
        log, settings = Path(folder) / "log", Path(folder) / "settings.py"
        # In a file, of which older ones leave out what they do not know: the socket for orders is
        # the same for all instances of an account.
        settings.write_text("control_socket_disable = True\n")
        defaults = ["-w", "2", "-k", "gthread", "--threads", "4", "--timeout", "120"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "gunicorn", target, "-b", f"fd://{listener.fileno()}"),
                    *("--worker-tmp-dir", folder, "-c", settings, *defaults, *options),
                ],
                pass_fds=[listener.fileno()],
                cwd=ROOT,
                env=environment(database, url, DYNO=name, **extra),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        instance = Instance(listener.getsockname()[1], process, log)
        try:
            _wait_until_up(instance)
            yield instance
        finally:
            _end(instance)


def _wait_until_up(instance: Instance) -> None:
    until = time.monotonic() + 90
    while time.monotonic() < until:
        assert instance.process.poll() is None, instance.log.read_text()
        if "Booting worker" in instance.log.read_text():
            with contextlib.suppress(OSError):
                if instance.post("no-such-job", timeout=10).status in (401, 404):
                    return
        time.sleep(0.05)
    raise AssertionError(f"gunicorn did not come up:\n{instance.log.read_text()}")


def _end(instance: Instance) -> None:
    """End the master and every worker of it."""
    workers = instance.workers() if instance.process.poll() is None else []
    instance.process.terminate()
    try:
        instance.process.wait(5)
    except subprocess.TimeoutExpired:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        instance.process.kill()
        instance.process.wait(10)


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Make all *calls* at the same moment, each in a thread; return what they return, in order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def start_run(
    database: Database, job: str, url: str | None = None, **extra: str
) -> subprocess.Popen[str]:
    """Start ``flask cron run JOB --json`` in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "flask", "--app", "tests.support.jobs_app"),
            *("cron", "run", job, "--json"),
        ],
        cwd=ROOT,
        env=environment(database, url, **extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
