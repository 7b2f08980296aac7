"""The demo as a stranger runs it: what it shows, and that nothing of it stays behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from sample_app.demo import verdict

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
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
        return [
            (process / "cmdline").read_text().replace("\0", " ")
            for process in Path("/proc").glob("[0-9]*")
            if self.owns(process)
        ]

    def owns(self, process: Path) -> bool:
        try:
            inherited = self.marker in (process / "environ").read_bytes()
            return inherited or (process / "cwd").readlink().is_relative_to(self.temp)
        except OSError:
            return False


@contextmanager
def started(*arguments: str, checkout: Path = ROOT) -> Iterator[Demo]:
    marker = uuid.uuid4().hex
    # Like /tmp, unlike pytest's: what root starts runs as another account and cleans up as such.
    temp = Path(tempfile.mkdtemp(prefix="demo-", dir="/tmp"))
    temp.chmod(0o1777)
    # Where the tests run in a shell's background SIGINT is ignored, by what they start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
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


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a checkout of our own, in a path with spaces."""
    checkout = tmp_path / "a check out"
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("flask_cronlock", "sample_app"):
        shutil.copytree(ROOT / package, checkout / package, ignore=ignored)
    for file in ("wsgi.py", "Procfile", "gunicorn.conf.py"):
        shutil.copy(ROOT / file, checkout)
    return checkout


@needs_proc
def test_one_hit_runs_the_others_skip_and_every_subscriber_gets_one_digest(copy: Path) -> None:
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 0, shown
    assert len(re.findall(r"\bRAN\b +1,000 digests", shown)) == 1
    assert len(re.findall(r"skipped  already (running, held by|ran at) \S+", shown)) == 20
    assert re.search(r"21  web\.2  200     skipped  already ran at ", shown)
    assert re.search(
        r"Digests per user\n  1 each  1,000 users\n  0 each     25 users  switched", shown
    )


@needs_proc
def test_both_instances_keep_running_and_show_the_outbox_until_ctrl_c() -> None:
    with started() as demo:
        shown = demo.read_until(READY)
        urls = re.findall(r"^  (http://\S+/)$", shown, re.MULTILINE)
        assert len(urls) == 2
        for url in urls:
            with urllib.request.urlopen(url) as page:
                assert "1 ✓" in page.read().decode()
        curl = re.search(r'-H "Authorization: (?P<secret>Bearer \S+)" (?P<url>\S+)', shown)
        assert curl
        headers = {"Authorization": curl["secret"]}
        hit = urllib.request.Request(curl["url"], method="POST", headers=headers)
        with urllib.request.urlopen(hit) as answer:
            assert b"already ran" in answer.read()
        demo.process.send_signal(signal.SIGINT)
        assert demo.ends() == 0


@needs_proc
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind(number: signal.Signals, status: int) -> None:
    with started() as demo:
        demo.read_until(READY)
        assert any("gunicorn" in process for process in demo.processes())
        demo.process.send_signal(number)
        assert demo.ends() == status


@needs_proc
@pytest.mark.parametrize(
    ("words", "number", "status"),
    [
        ("subscribers with posts", signal.SIGINT, 128 + signal.SIGINT),
        ("subscribers with posts", signal.SIGKILL, -signal.SIGKILL),
        ("web.1", signal.SIGTERM, 128 + signal.SIGTERM),
        ("web.1", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind_by_a_demo_that_was_still_starting(
    words: str, number: signal.Signals, status: int
) -> None:
    with started() as demo:
        demo.read_until(words)
        demo.process.send_signal(number)
        assert demo.ends() == status


@needs_proc
def test_a_job_that_mails_twice_is_shown_as_such(copy: Path) -> None:
    digest = copy / "sample_app" / "digest.py"
    broken = digest.read_text()
    for sound, faulty in (
        ("User.last_digest_at < slot", "User.last_digest_at <= slot"),
        (
            "    return write_digests(",
            "    write_digests(run.session, run.slot)\n    return write_digests(",
        ),
    ):
        assert sound in broken
        broken = broken.replace(sound, faulty)
    digest.write_text(broken)
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 1, shown
    assert re.search(r"Digests per user\n  2 each  1,000 users\n", shown)


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({(True, 1): 1000, (False, 0): 25}, 0),
        ({(True, 1): 1000}, 0),
        ({(True, 2): 1, (True, 1): 999}, 1),
        ({(True, 1): 999, (True, 0): 1}, 1),
        ({(True, 1): 1000, (False, 1): 1}, 1),
        ({}, 1),
    ],
)
def test_only_one_digest_for_each_subscriber_is_a_success(
    counts: dict[tuple[bool, int], int], status: int
) -> None:
    assert verdict(counts) == status
