"""Processes that use the embedded server, and a look at what they use."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

from sample_app import embedded

PACKAGE = Path(embedded.__file__).parent
SCRIPT = Path(__file__).with_name("embedded_starter.py")


class Starter:
    """A process that has asked for the server of a folder and uses it."""

    def __init__(
        self,
        base: Path | str,
        *words: str,
        script: Path = SCRIPT,
        package: Path = PACKAGE,
        python: str = sys.executable,
        **popen: Any,
    ) -> None:
        command = [python, script, package.parent, base, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **popen)
        self.output = self.process.stdout

    def line(self) -> str:
        """Return the next line it says."""
        line = self.output.readline().strip()
        assert line, f"the starter said nothing and ended with {self.process.wait()}"
        return line

    def end(self, signum: int = signal.SIGKILL) -> None:
        """End it, unless it has ended."""
        self.process.send_signal(signum)
        self.process.wait()

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.close()


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every account can enter, unlike pytest's; wait for its servers' end."""
    folder = Path(tempfile.mkdtemp(prefix="embedded test ", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for lock in folder.rglob("pg*/supervisor"):
        with lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    shutil.rmtree(folder)


def socket_folder(url: str) -> Path:
    """Return the folder of the socket a URL leads to."""
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def query(url: str, statement: str = "select 1") -> Any:
    """Return the first value of the answer."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(statement).fetchone()
        return row and row[0]


def answers(url: str) -> bool:
    """Tell whether the server answers now."""
    try:
        return query(url) == 1
    except psycopg.OperationalError:
        return False


def postmaster(url: str) -> int:
    """Return the process id of the server a URL leads to."""
    data = Path(query(url, "show data_directory"))
    return int((data / "postmaster.pid").read_text().split()[0])
