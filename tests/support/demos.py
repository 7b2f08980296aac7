"""The demo in a process of its own, as a stranger runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240.0
GONE_WITHIN = 30.0
MARKER = "DEMO_TEST_MARKER"
READY = "Ctrl-C ends everything"

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs /proc to see what is left behind"
)


@dataclass
class Demo:
    """A started demo. What it starts inherits `marker`, or has its files in `temp`."""

    process: subprocess.Popen[str]
    marker: bytes
    temp: Path

    @property
    def output(self) -> IO[str]:
        assert self.process.stdout
        return self.process.stdout

    def read_until(self, words: str) -> str:
        """Return what it printed up to and including the line with these words."""
        lines: list[str] = []
        for line in self.output:
            lines.append(line)
            if words in line:
                return "".join(lines)
        pytest.fail(f"the demo ended before {words!r}:\n{''.join(lines)}")

    def ends(self) -> int:
        """Return its exit status once every process and every file of it is gone."""
        status = self.process.wait()
        deadline = time.monotonic() + GONE_WITHIN
        while left := [*self.processes(), *self.temp.iterdir()]:
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.05)
        return status

    def processes(self) -> list[str]:
        """Return the command lines of the processes that belong to it."""
        found = map(self.command_of, Path("/proc").glob("[0-9]*"))
        return [command for command in found if command is not None]

    def command_of(self, process: Path) -> str | None:
        """Return the command line of *process*; ``None`` if it is another's, or gone by now."""
        try:
            inherited = self.marker in (process / "environ").read_bytes()
            if inherited or (process / "cwd").readlink().is_relative_to(self.temp):
                return (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            pass
        return None


@contextmanager
def started(*arguments: str, checkout: Path = ROOT) -> Iterator[Demo]:
    marker = uuid.uuid4().hex
    # Like /tmp, unlike pytest's: what root starts runs as another account and cleans up as such.
    temp = Path(tempfile.mkdtemp(prefix="demo-", dir="/tmp"))
    temp.chmod(0o1777)
    environment = {**os.environ, MARKER: marker, "TMPDIR": str(temp), "PYTHONPATH": str(checkout)}
    process = subprocess.Popen(
        [sys.executable, "-m", "sample_app.demo", *arguments],
        cwd=temp,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    impatience = threading.Timer(PATIENCE, process.kill)
    impatience.start()
    try:
        with process:
            yield Demo(process, marker.encode(), temp)
            process.kill()
    finally:
        impatience.cancel()
        shutil.rmtree(temp, ignore_errors=True)


def copy_checkout(folder: Path) -> Path:
    """Return a checkout of our own, in a path with spaces."""
    checkout = folder / "a check out"
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("flask_cronlock", "sample_app"):
        shutil.copytree(ROOT / package, checkout / package, ignore=ignored)
    for file in ("wsgi.py", "Procfile", "gunicorn.conf.py"):
        shutil.copy(ROOT / file, checkout)
    return checkout


def hurried(checkout: Path) -> Path:
    """Have the demo of a checkout over sooner: 200 users, and workers given up after 10 seconds."""
    stage = checkout / "sample_app" / "demo_stage.py"
    edit(stage, ("SUBSCRIBERS = 1_000", "SUBSCRIBERS = 200"))
    queue = checkout / "flask_cronlock" / "queue"
    edit(
        queue / "heart.py",
        ("BEAT_EVERY = 10.0", "BEAT_EVERY = 1.0"),
        ("STALLED_AFTER = 60.0", "STALLED_AFTER = 10.0"),
        ("STEADY_AFTER = 30.0", "STEADY_AFTER = 3.0"),
    )
    edit(queue / "keeper.py", ("LOOK_EVERY = 15.0", "LOOK_EVERY = 1.5"))
    return checkout


def edit(file: Path, *changes: tuple[str, str]) -> None:
    """Replace words of `file`, each of which must be there."""
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
