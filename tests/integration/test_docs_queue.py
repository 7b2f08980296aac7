"""What docs/queue.md shows first is run as it stands there, with a real worker and mail server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

from ..support.databases import Database
from ..support.mail_servers import Kept, serving

ROOT = Path(__file__).parents[2]
APP = re.compile(r"```python\n(from flask import Flask\n.*?def create_app\(.*?)```", re.DOTALL)
FILE = re.compile(r"```python\n# (digests\.py)\n(.*?)```", re.DOTALL)
USERS = 5


def test_each_user_gets_one_digest_with_a_message_id_of_its_own(
    database: Database, tmp_path: Path
) -> None:
    (app,) = APP.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "queue.md").read_text(encoding="utf-8")
    for name, content in {"shop.py": app, **dict(FILE.findall(page))}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    kept = Kept()
    with serving(kept) as server:
        environ = {
            **os.environ,
            "FLASK_SQLALCHEMY_DATABASE_URI": database.url,
            "MAIL_SERVER": f"{server.host}:{server.port}",
        }

        def flask(*words: str, text: str = "") -> None:
            done = subprocess.run(
                [sys.executable, "-m", "flask", "--app", "digests", *words],
                cwd=tmp_path,
                env=environ,
                input=text,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stdout + done.stderr

        flask("cron", "init-db")
        flask("shell", text="db.create_all()")
        database.query(
            'INSERT INTO "user" (digest_enabled) SELECT true FROM generate_series(1, %s)', USERS
        )
        for _ in range(2):
            flask("cron", "run", "digest-to-all")
        flask("cron", "worker", "--until-empty")

    mails = [message_from_bytes(mail) for mail in kept.mails]
    assert sorted(mail["To"] for mail in mails) == [
        f"user-{number}@example.org" for number in range(1, USERS + 1)
    ]
    assert len({mail["Message-ID"] for mail in mails}) == USERS
