"""Processes that use the embedded server, and what they leave behind."""

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
    """A process that has asked for the server and uses it."""

    def __init__(self, base: Path, *words: str, python: str = sys.executable, **popen: Any) -> None:
        package = popen.pop("package", PACKAGE.parent)
        command = [python, str(STARTER), str(package), str(base), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **popen)
        self.output = self.process.stdout

    def line(self) -> str:
        """Return the next line it says."""
        line = self.output.readline().strip()
        assert line, f"the starter said nothing and ended with {self.process.wait()}"
        return line

    def end(self, signum: int = signal.SIGKILL) -> None:
        """Kill it."""
        self.process.send_signal(signum)
        self.process.wait()

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.close()


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder of our own that every account can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="embedded test ", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for lock in folder.rglob("pg*/supervisor"):
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    shutil.rmtree(folder)


def socket_folder(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def query(url: str, statement: str = "select 1") -> object:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return connection.execute(statement).fetchone()[0]


def answers(url: str) -> bool:
    try:
        return query(url) == 1
    except psycopg.OperationalError:
        return False


def postmaster(url: str) -> int:
    data = Path(str(query(url, "show data_directory")))
    return int((data / "postmaster.pid").read_text().split()[0])


