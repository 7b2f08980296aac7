"""An app whose one task does nothing, and whose jobs defer it for every user, each in its way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import BigInteger, DateTime, Identity, Update, or_, update

from flask_cronlock import CronLock, Run

db = SQLAlchemy()
cron = CronLock(db)

BATCH = 500
"""Items that make one row of the queue, where it is not one."""
TIMES: dict[str, Any] = {"schedule": "0 0 * * *", "max_lateness": "20000d", "timeout": "30m"}


class User(db.Model):
    """A reader; ``last_digest_at`` is the slot of the newest digest."""

    __tablename__ = "users"

    id = db.mapped_column(BigInteger, Identity(), primary_key=True)
    last_digest_at = db.mapped_column(DateTime(timezone=True))


@cron.task("mail", timeout="5m")
def mail(user_id: int) -> None:
    """Be the mail that costs nothing, so that only the queue is measured."""


def stamped(run: Run, users: int) -> Update:
    """Return the statement that stamps the first *users*, and gives the task's arguments."""
    due = or_(User.last_digest_at.is_(None), User.last_digest_at < run.slot)
    stamp = update(User).where(User.id <= users, due).values(last_digest_at=run.slot)
    return stamp.returning(User.id.label("user_id"))


def mails(users: int) -> Iterator[Mapping[str, int]]:
    """Yield the task's arguments for each user."""
    return ({"user_id": user} for user in range(1, users + 1))


def slots() -> Iterator[datetime]:
    """Yield the slots from 2020 on: users are due again with each."""
    return (datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in count())


def create_app(url: str | None = None) -> Flask:
    """Return the app, on the database *url* or that of ``DATABASE_URL``."""
    app = Flask("queue-benchmark")
    app.config["SQLALCHEMY_DATABASE_URI"] = url or os.environ["DATABASE_URL"]
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {"connect_args": {"prepare_threshold": None}}
    db.init_app(app)
    cron.init_app(app)
    return app


def set_up(app: Flask) -> None:
    """Make all tables, the queue's too."""
    with app.app_context():
        db.create_all()
    made = app.test_cli_runner().invoke(args=["cron", "init-db"])
    if made.exit_code:
        raise RuntimeError(made.output)
