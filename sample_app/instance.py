"""One instance of the application: the web command of the Procfile, on a free loopback port."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from socket import create_server

from .process import NotReady, Process, procfile, started

HOST = "127.0.0.1"
READY_SECONDS = 30.0
REQUEST_SECONDS = 90.0


@dataclass(frozen=True)
class Instance(Process):
    """A running instance; it answers on `url`."""

    port: int

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
        while self.is_running and time.monotonic() < deadline:
            if self.is_ready():
                return
            time.sleep(0.1)
        raise NotReady(f"{self.name} did not become ready:\n{self.read_log()}")

    def is_ready(self) -> bool:
        try:
            return self.request("GET", "/healthz")[0] == 200
        except (OSError, HTTPException):
            return False


def running(
    name: str, workers: int, settings: Mapping[str, str]
) -> AbstractContextManager[Instance]:
    """Start an instance of the application as `DYNO=name`; see `serving`."""
    return serving(name, [*procfile("web"), f"--workers={workers}"], settings)


@contextmanager
def serving(name: str, gunicorn: Sequence[str], settings: Mapping[str, str]) -> Iterator[Instance]:
    """Start a gunicorn with `settings` in its environment; end it on leaving, or with us."""
    with create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        bound = [*gunicorn, f"--bind=fd://{listener.fileno()}"]
        with started(name, bound, settings, listener) as one:
            yield Instance(one.name, one.process, one.log, port)
