"""The demo as a stranger runs it: what it shows, and that it shows what is wrong."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

import pytest

from sample_app.demo import verdict

from ..support.demos import READY, copy_checkout, hurried, needs_proc, started


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return hurried(copy_checkout(tmp_path))


@needs_proc
def test_one_hit_runs_the_others_skip_and_every_subscriber_gets_one_digest_and_one_mail(
    tmp_path: Path,
) -> None:
    copy = copy_checkout(tmp_path)
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 0, shown
    assert len(re.findall(r"\bRAN\b +1,000 digests", shown)) == 1
    assert len(re.findall(r"skipped  already (running|ran at \S+)", shown)) == 20
    assert re.search(r"21  web\.2  200     skipped  already ran at ", shown)
    assert re.search(
        r"Digests per user\n  1 each  1,000 users\n  0 each     25 users  switched", shown
    )
    assert re.search(r"\d+ of 1,000  all of worker\.1 is killed", shown)
    assert re.search(r"Mails per user.*\n  1 each  1,000 users\n  0 each     25 users", shown)
    assert re.search(r"^  [1-4] of them came twice, under one Message-ID", shown, re.MULTILINE)


@needs_proc
def test_both_instances_keep_running_and_show_outbox_and_inbox_until_ctrl_c(copy: Path) -> None:
    with started(checkout=copy) as demo:
        shown = demo.read_until(READY)
        urls = re.findall(r"^  (http://\S+/)$", shown, re.MULTILINE)
        assert len(urls) == 2
        for url in urls:
            with urllib.request.urlopen(url) as page:
                assert "1 ✓" in page.read().decode()
            with urllib.request.urlopen(f"{url}inbox") as page:
                assert "<b>200</b> mails" in page.read().decode()
        curl = re.search(r'-H "Authorization: (?P<secret>Bearer \S+)" (?P<url>\S+)', shown)
        assert curl
        headers = {"Authorization": curl["secret"]}
        hit = urllib.request.Request(curl["url"], method="POST", headers=headers)
        with urllib.request.urlopen(hit) as answer:
            assert b"already ran" in answer.read()
        demo.process.send_signal(signal.SIGINT)
        assert demo.ends() == 0


ONCE = {(True, 1): 1000, (False, 0): 25}


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        (ONCE, 0),
        ({(True, 1): 1000}, 0),
        ({(True, 2): 1, (True, 1): 999}, 1),
        ({(True, 1): 999, (True, 0): 1}, 1),
        ({(True, 1): 1000, (False, 1): 1}, 1),
        ({}, 1),
    ],
)
def test_only_one_digest_and_one_mail_for_each_subscriber_is_a_success(
    counts: dict[tuple[bool, int], int], status: int
) -> None:
    assert verdict(counts, ONCE, 0) == status
    assert verdict(ONCE, counts, 0) == status
