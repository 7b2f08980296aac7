"""The demo as a stranger runs it: what it shows, and that nothing of it stays behind."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

import pytest

from sample_app.demo import verdict

from ..support.demos import READY, copy_checkout, edit, needs_proc, started


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_checkout(tmp_path)


@needs_proc
def test_one_hit_runs_the_others_skip_and_every_subscriber_gets_one_digest(copy: Path) -> None:
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 0, shown
    assert len(re.findall(r"\bRAN\b +1,000 digests", shown)) == 1
    assert len(re.findall(r"skipped  already (running|ran at \S+)", shown)) == 20
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
    edit(
        copy / "sample_app" / "digest.py",
        ("User.last_digest_at < slot", "User.last_digest_at <= slot"),
        (
            "    return write_digests(",
            "    write_digests(run.session, run.slot)\n    return write_digests(",
        ),
    )
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
