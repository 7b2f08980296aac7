"""The Procfile's worker mails what the digest's job deferred, to a mail server of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

import pytest
from flask import Flask

from sample_app.extensions import cron

from ..support.databases import Database
from ..support.demos import ROOT
from ..support.instances import environment
from ..support.processes import wait_until
from ..support.samples import sample_on

SUBSCRIBERS = 30
PROCFILE = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())


@pytest.fixture(autouse=True)
def app(database: Database) -> Iterator[Flask]:
    """The sample, after a run of its job."""
    with sample_on(database, SUBSCRIBERS, 2) as app:
        with app.app_context():
            cron.run("daily-digest")
        yield app


@contextmanager
def sink(database: Database) -> Iterator[str]:
    """Run the mail server whose inbox is a page; yield its URL."""
    with create_server(("127.0.0.1", 0)) as listener:
        url = f"smtp://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "sample_app.sink", f"--fd={listener.fileno()}"]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(database), pass_fds=[listener.fileno()]
        )
    with process:
        try:
            yield url
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


def worker(database: Database, smtp_url: str, *options: str) -> subprocess.Popen[str]:
    program, *words = shlex.split(PROCFILE["worker"])
    assert program == "flask"
    return subprocess.Popen(
        [sys.executable, "-m", program, *words, *options],
        cwd=ROOT,
        env=environment(database, SMTP_URL=smtp_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def mails(database: Database) -> int:
    return int(database.value("SELECT count(*) FROM inbox"))


def test_each_subscriber_gets_one_mail(database: Database) -> None:
    with sink(database) as url, worker(database, url) as process:
        try:
            wait_until(lambda: mails(database) >= SUBSCRIBERS, 60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    got = database.query("SELECT recipient, deliveries FROM inbox ORDER BY 1")
    wanted = "SELECT email, 1::bigint FROM users WHERE digest_enabled ORDER BY 1"
    assert got == database.query(wanted)


def test_no_connection_waits_for_the_mail_server(database: Database) -> None:
    waiting = """
        SELECT count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Lock'),
               count(*) FILTER (WHERE state LIKE 'idle in transaction%')
        FROM pg_stat_activity WHERE datname = current_database()
    """
    started = "SELECT count(*) FROM cronlock_item WHERE state = 'started'"
    with sink(database) as url, worker(database, url, "--until-empty") as process:
        with database.connect() as holder, holder.transaction():
            # The server has all of a mail, and its answer waits for this.
            holder.execute("LOCK TABLE inbox IN SHARE MODE")
            wait_until(lambda: database.value(waiting) > 0, 60)
            wait_until(lambda: database.value(waiting) == database.value(started))
            assert database.query(waiting)[0][1] == 1, "besides the holder"
        process.communicate(timeout=90)
    assert mails(database) == SUBSCRIBERS


def test_what_cannot_be_made_a_mail_is_known_to_be_unsent(database: Database) -> None:
    database.query("UPDATE users SET email = 'no address' WHERE id = 3")
    failed = "SELECT error FROM cronlock_item WHERE state = 'waiting' AND NOT in_doubt"
    with sink(database) as url, worker(database, url) as process:
        try:
            wait_until(lambda: mails(database) == SUBSCRIBERS - 1, 60)
            wait_until(lambda: database.query(failed))
        finally:
            process.kill()
    ((error,),) = database.query(failed)
    assert "no mail can be made for 'no address'" in error


def test_a_digest_that_is_gone_is_not_mailed_and_holds_up_no_other(database: Database) -> None:
    database.query("DELETE FROM outbox WHERE id = 3")
    with sink(database) as url, worker(database, url, "--until-empty") as process:
        log, _ = process.communicate(timeout=90)
    assert "Digest 3 is gone from the outbox" in log
    assert mails(database) == SUBSCRIBERS - 1
    ended = database.query("SELECT state, count(*) FROM cronlock_item GROUP BY 1")
    assert ended == [("done", SUBSCRIBERS)]


def test_without_a_mail_server_the_mails_wait_and_the_log_names_the_cure(
    database: Database,
) -> None:
    with worker(database, "") as process:
        try:
            open_items = "SELECT count(*) FROM cronlock_item WHERE state = 'waiting'"
            wait_until(lambda: database.value(open_items) == SUBSCRIBERS, 60)
        finally:
            process.kill()
        log = process.communicate()[0]
    assert "set SMTP_URL, such as smtp://127.0.0.1:2525" in log
    in_doubt = "SELECT count(*) FROM cronlock_item WHERE in_doubt"
    assert database.value(in_doubt) == 0
