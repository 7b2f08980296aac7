"""Without the extra: what needs it says so in one clear error, and all else works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import literal, select

from flask_cronlock import Run
from flask_cronlock.exceptions import ConfigError, QueueMissing
from flask_cronlock.queue.extra import queue_is_installed

from ..support.databases import Database
from ..support.outcomes import LONG, value_of
from ..support.worlds import World, world_on

CURE = r"pip install 'Flask-CronLock\[queue\]'"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "procrastinate", None)
    queue_is_installed.cache_clear()
    assert not queue_is_installed()
    yield
    queue_is_installed.cache_clear()


@pytest.fixture
def bare(without: None, database: Database) -> Iterator[World]:
    """A world all of which was made without the extra, but for a task of earlier."""
    with world_on(database) as made:
        yield made


def test_a_job_and_its_endpoint_work_all_the_same(bare: World) -> None:
    @bare.cron.job("digest", every=LONG)
    def digest(run: Run) -> None:
        bare.note("sent")

    assert bare.post("digest").status_code == 200
    assert bare.notes == ["sent"]
    with bare.app.app_context():
        value_of(bare.cron.with_lock("cache", lambda _: bare.note("locked")))
        assert bare.cron.once("a key")
        bare.db.session.commit()
    tables = bare.database.value("SELECT count(*) FROM pg_tables WHERE tablename ~ '^procrast'")
    assert tables == 0


def test_a_task_cannot_be_registered(bare: World) -> None:
    with pytest.raises(QueueMissing, match=CURE) as refused:
        bare.cron.task("send")(lambda n: None)
    assert isinstance(refused.value, ConfigError)
    with pytest.raises(QueueMissing, match=CURE):
        bare.cron.task(lambda n: None)
    assert list(bare.cron.tasks) == []


def test_nothing_can_be_deferred(bare: World) -> None:
    numbers = select(literal(1).label("n"))
    with bare.app.app_context():
        session = bare.db.session
        for call in (
            lambda: bare.cron.defer(session, "send", n=1),
            lambda: bare.cron.defer_many(session, "send", [{"n": 1}]),
            lambda: bare.cron.defer_from(session, "send", numbers),
        ):
            with pytest.raises(QueueMissing, match=CURE):
                call()

    @bare.cron.job("digest", every=LONG)
    def digest(run: Run) -> None:
        run.defer("send", n=1)

    response = bare.post("digest")
    assert response.status_code == 500
    assert "Flask-CronLock[queue]" in bare.attempts()[0][1]


def test_there_is_no_worker(bare: World) -> None:
    result = bare.app.test_cli_runner().invoke(args=["cron", "worker"])
    assert result.exit_code != 0
    assert "pip install 'Flask-CronLock[queue]'" in result.output
    assert "Traceback" not in result.output


def test_it_is_not_imported_for_deferring(database: Database, world: World, tmp_path: Path) -> None:
    script = tmp_path / "deferring.py"
    script.write_text(
        "import sys\n"
        "from tests.support.tasks_app import Flask, cron, db, poison\n"
        "app = Flask('x')\n"
        f"app.config.update(SQLALCHEMY_DATABASE_URI={database.url!r})\n"
        "db.init_app(app)\n"
        "cron.init_app(app)\n"
        "with app.app_context():\n"
        "    cron.defer(db.session, poison, n=0)\n"
        "    db.session.commit()\n"
        "    print(cron.run('digest'))\n"
        "print(sorted(name for name in sys.modules if name.startswith('procrastinate')))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
