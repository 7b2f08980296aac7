"""What the demos stand on: subscribers, two instances, mail, and lines that are printed at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from socket import create_server
from typing import TypeVar

from flask import Flask

from . import create_app
from .extensions import db
from .instance import HOST, Instance, running
from .process import NotReady, Process, procfile, started
from .seed import seed

T = TypeVar("T")

SUBSCRIBERS = 1_000
UNSUBSCRIBED = 25
WORKERS = 2
WEB = ("web.1", "web.2")
MAILERS = ("worker.1", "worker.2")
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 60.0


def with_subscribers(url: str) -> Flask:
    """Return an application on the empty database at `url`, with its tables and users made."""
    # It takes no request; without a secret of its own it would check the shell's.
    secret = secrets.token_urlsafe(32)
    app = create_app({"SQLALCHEMY_DATABASE_URI": url, "CRONLOCK_SECRET": secret})
    say(f"{SUBSCRIBERS:,} subscribers with posts, on a PostgreSQL of this demo's own")
    made = app.test_cli_runner().invoke(args=["cron", "init-db"])
    if made.exit_code:
        raise NotReady(f"The tables cannot be made:\n{made.output}")
    with app.app_context():
        db.create_all()
        seed(db.session(), SUBSCRIBERS, UNSUBSCRIBED)
        db.session.commit()
        db.engine.dispose()
    return app


def start_both(stack: ExitStack, settings: Mapping[str, str]) -> list[Instance]:
    """Start two instances, which end when `stack` does, and return them when they answer."""
    instances = [stack.enter_context(running(name, WORKERS, settings)) for name in WEB]
    for instance in instances:
        instance.wait_until_ready()
        say(f"  {instance.name}  {instance.url}  {WORKERS} workers")
    return instances


def start_mail(stack: ExitStack, settings: Mapping[str, str], page: str) -> list[Process]:
    """Start two workers, and the mail server that they send to; return all three."""
    with create_server((HOST, 0)) as listener:
        smtp = f"smtp://{HOST}:{listener.getsockname()[1]}"
        sink = ["sample_app.sink", f"--fd={listener.fileno()}"]
        mail = stack.enter_context(started("mail", sink, settings, listener))
    command, to_it = procfile("worker"), {**settings, "SMTP_URL": smtp}
    workers = [stack.enter_context(started(name, command, to_it)) for name in MAILERS]
    for worker in workers:
        say(f"  {worker.name}  {' '.join(command)}")
    say(f"  {mail.name}  {smtp}, shown on {page}")
    return [*workers, mail]


def wait_for(look: Callable[[], T], processes: Sequence[Process], problem: str) -> T:
    """Return what `look` sees, as soon as it sees something."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        if time.monotonic() > until:
            raise stuck(f"{problem} for {PATIENCE_SECONDS:.0f} seconds", processes)
        time.sleep(POLL_SECONDS)
    return seen


def stuck(problem: str, processes: Sequence[Process]) -> NotReady:
    """Return the error that tells of a problem, with what the processes say about it."""
    logs = "".join(f"\n{one.name}:\n{one.read_log()}" for one in processes)
    return NotReady(f"{problem}.{logs}")


def say(line: str = "") -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)
