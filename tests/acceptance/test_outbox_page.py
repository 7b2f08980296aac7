"""The sample's outbox, in a real browser."""

from __future__ import annotations

import subprocess
import sys

from ..support.chromium import rendered
from ..support.databases import Database
from ..support.instances import ROOT, environment, gunicorn


def test_a_browser_shows_the_digests_that_a_hit_wrote(database: Database) -> None:
    for command in ("cron init-db", "sample init-db", "sample seed --users 20"):
        subprocess.run(
            [sys.executable, "-m", "flask", "--app", "wsgi", *command.split()],
            cwd=ROOT,
            env=environment(database),
            check=True,
            capture_output=True,
        )
    with gunicorn(database, target="wsgi:app") as instance:
        empty = rendered(f"http://127.0.0.1:{instance.port}/")
        answer = instance.post("daily-digest")
        full = rendered(f"http://127.0.0.1:{instance.port}/")

    assert answer.body["processed"] == 20
    assert "cron run daily-digest" in empty
    assert full.count("Good morning, ") == 20
    assert "cron run daily-digest" not in full
