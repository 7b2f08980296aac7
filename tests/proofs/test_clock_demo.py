"""The demo without a scheduler: clocks alone run every slot once, also when half of them die."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sample_app.demo_clock import EVERY, SUBSCRIBERS, verdict

from ..support.databases import Database
from ..support.demos import READY, ROOT, copy_checkout, edit, needs_proc, started
from ..support.instances import environment
from ..support.processes import wait_until

HEADER = "late by"
SOUND = "Every subscriber got one digest for every slot."
SLOT = re.compile(r"^  \d\d:\d\d:\d\d  (web\.[12])/\d+ +1,000 +[\d,]+ ms$", re.MULTILINE)
KILL = re.compile(r"^  (web\.[12])/\d+ runs the next slot, and all of \1 is killed", re.MULTILINE)
FIRST = datetime(2026, 11, 30, 7, tzinfo=UTC)
SLOTS = [FIRST + number * EVERY for number in range(4)]
ALL = 4 * SUBSCRIBERS


@pytest.mark.parametrize(
    ("runs", "digests", "status"),
    [
        ([1, 1, 1, 1], {(True, 1): ALL, (False, 0): 100}, 0),
        ([1, 2, 1, 1], {(True, 1): ALL, (False, 0): 100}, 1),
        ([1, 0, 1, 1], {(True, 1): ALL - SUBSCRIBERS, (False, 0): 75}, 1),
        ([1, 1, 1, 1], {(True, 1): ALL - 1, (True, 2): 1, (False, 0): 100}, 1),
        ([1, 1, 1, 1], {(True, 1): ALL - 1, (True, 0): 1, (False, 0): 100}, 1),
        ([1, 1, 1, 1], {(True, 1): ALL, (False, 1): 100}, 1),
        ([1, 1, 1, 1], {(True, 1): ALL - SUBSCRIBERS, (False, 0): 75}, 1),
    ],
)
def test_only_one_run_a_slot_and_one_digest_a_subscriber_is_a_success(
    runs: list[int], digests: dict[tuple[bool, int], int], status: int
) -> None:
    ran = {slot: times for slot, times in zip(SLOTS, runs, strict=True) if times}
    assert verdict(ran, digests) == status


def test_the_procfiles_clock_writes_the_digests_by_itself(database: Database) -> None:
    processes = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    every_second = environment(database, DIGEST_EVERY="1s")

    def flask(command: str) -> subprocess.Popen[bytes]:
        program, *words = shlex.split(command)
        assert program == "flask"
        return subprocess.Popen([sys.executable, "-m", program, *words], cwd=ROOT, env=every_second)

    for command in processes["release"].split("&&"):
        assert flask(command).wait() == 0
    assert flask("flask --app wsgi sample seed --users 10").wait() == 0
    with flask(processes["clock"]) as clock:
        try:
            wait_until(lambda: database.value("SELECT count(DISTINCT slot) FROM outbox") > 1)
            clock.send_signal(signal.SIGTERM)
            assert clock.wait(30) == 0
        finally:
            clock.kill()
    doubled = "SELECT 1 FROM outbox GROUP BY user_id, slot HAVING count(*) > 1"
    assert database.query(doubled) == []
    assert database.value("SELECT count(*) FROM cronlock_run WHERE trigger <> 'clock'") == 0


@needs_proc
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind_half_way(number: signal.Signals, status: int) -> None:
    with started("--clock") as demo:
        demo.read_until(HEADER)
        assert any("gunicorn" in process for process in demo.processes())
        demo.process.send_signal(number)
        assert demo.ends() == status


@needs_proc
def test_the_clocks_run_every_slot_once_though_one_instance_is_killed() -> None:
    with started("--clock", "--once") as demo:
        shown = demo.output.read()
        assert demo.ends() == 0, shown
    before, victim, after = KILL.split(shown)
    assert len(SLOT.findall(before)) == 2
    survivor = {"web.1": "web.2", "web.2": "web.1"}[victim]
    assert SLOT.findall(after)[-1] == survivor
    assert re.search(r"Runs per slot\n  1 each +[4-9] slots\nDigests", after)
    assert re.search(r"([4-9]) slots, 1,000 subscribers\n  1 each +\1,000\n  0 each", after)
    assert SOUND in after


@needs_proc
def test_both_go_on_until_ctrl_c_and_are_counted_once_more() -> None:
    with started("--clock") as demo:
        shown = demo.read_until(READY)
        urls = re.findall(r"^  (http://\S+/)$", shown, re.MULTILINE)
        assert len(urls) == 2
        for url in urls:
            with urllib.request.urlopen(url) as page:
                text = page.read().decode()
            assert "One digest every 5s for each subscriber." in text
            assert "1 ✓" in text
            assert "✗" not in text
        demo.read_until(" ms\n")
        demo.process.send_signal(signal.SIGINT)
        shown = demo.output.read()
        assert demo.ends() == 0, shown
    assert re.search(r"Runs per slot\n  1 each +\d+ slots\nDigests", shown)
    assert SOUND in shown


@needs_proc
def test_clocks_without_lock_and_claim_are_shown_to_run_slots_twice(tmp_path: Path) -> None:
    copy = copy_checkout(tmp_path)
    shutil.copy(ROOT / "tests" / "support" / "without.py", copy)
    edit(
        copy / "sample_app" / "extensions.py",
        ("db = SQLAlchemy()", "import without\n\nwithout.apply('lock,claim')\ndb = SQLAlchemy()"),
    )
    edit(
        copy / "sample_app" / "digest.py",
        ("User.last_digest_at < slot", "User.last_digest_at <= slot"),
    )
    with started("--clock", "--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 1, shown
    runs, digests = shown.split("Runs per slot\n")[1].split("Digests per user and slot")
    assert re.search(r"^  [2-4] each +\d slots$", runs, re.MULTILINE)
    assert re.search(r"^  [2-4] each +\d,000$", digests, re.MULTILINE)
    assert SOUND not in shown
