"""The demo with a fault in it: its counts show that, and its exit status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..support.demos import copy_checkout, edit, hurried, needs_proc, started

TWICE = "        for digests in ranges("


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return hurried(copy_checkout(tmp_path))


@needs_proc
def test_a_job_that_mails_twice_is_shown_as_such(copy: Path) -> None:
    edit(
        copy / "sample_app" / "digest.py",
        ("User.last_digest_at < slot", "User.last_digest_at <= slot"),
        (TWICE, f"        for _ in range(2)\n{TWICE}"),
    )
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 1, shown
    assert re.search(r"Digests per user\n  2 each    200 users\n", shown)
    assert re.search(r"Mails per user.*\n  2 each    200 users\n", shown)


@needs_proc
def test_mails_that_carry_another_id_when_sent_again_are_shown_as_such(copy: Path) -> None:
    edit(
        copy / "sample_app" / "mail.py",
        ("item.message_id(DOMAIN)", "f'<{item.token}.{item.attempt}@{DOMAIN}>'"),
    )
    with started("--once", checkout=copy) as demo:
        shown = demo.output.read()
        assert demo.ends() == 1, shown
    doubled = r"Mails per user.*\n  2 each      [1-4] users\n  1 each    19[6-9] users\n"
    assert re.search(doubled, shown)
    assert "NOT every count is 1." in shown
