"""What both demos stand on: subscribers, two instances, and lines that are printed at once."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack

from flask import Flask

from . import create_app
from .extensions import db
from .instance import Instance, running
from .seed import seed

SUBSCRIBERS = 1_000
UNSUBSCRIBED = 25
WORKERS = 2
NAMES = ("web.1", "web.2")


def with_subscribers(url: str) -> Flask:
    """Return an application on the empty database at `url`, with its tables and users made."""
    # It takes no request; without a secret of its own it would check the shell's.
    secret = secrets.token_urlsafe(32)
    app = create_app({"SQLALCHEMY_DATABASE_URI": url, "CRONLOCK_SECRET": secret})
    say(f"{SUBSCRIBERS:,} subscribers with posts, on a PostgreSQL of this demo's own")
    with app.app_context():
        db.create_all()
        seed(db.session(), SUBSCRIBERS, UNSUBSCRIBED)
        db.session.commit()
        db.engine.dispose()
    return app


def start_both(stack: ExitStack, settings: Mapping[str, str]) -> list[Instance]:
    """Start two instances, which end when `stack` does, and return them when they answer."""
    instances = [stack.enter_context(running(name, WORKERS, settings)) for name in NAMES]
    for instance in instances:
        instance.wait_until_ready()
        say(f"  {instance.name}  {instance.url}  {WORKERS} workers")
    return instances


def say(line: str = "") -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)
