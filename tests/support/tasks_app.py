"""An app in a process of its own, whose job and tasks end it by SIGKILL.

It is given a URL, and ``job NAME`` to run, or ``work TASK ATTEMPTS`` for a task's rows to work off.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

import psycopg
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run
from flask_cronlock.queue.work import Delivered, GivenUp, Redeliver, work_off
from flask_cronlock.state import this_state

ATTEMPTS = 2

db = SQLAlchemy()
cron = CronLock(db)


def mark(what: str) -> None:
    """Count a call where no rollback and no kill undoes it."""
    with db.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        with psycopg.connect(driver.info.dsn, autocommit=True) as apart:
            apart.execute("INSERT INTO mark VALUES (%s, clock_timestamp())", [what])


def note(what: str) -> None:
    db.session.execute(db.text("INSERT INTO note VALUES (:what)"), {"what": what})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@cron.task(attempts=ATTEMPTS)
def poison(n: int) -> None:
    """Write, and die of item 1."""
    note(str(n))
    if n == 1:
        mark("poison")
        die()


@cron.task(delivery="at_most_once", attempts=ATTEMPTS)
def send_once(n: int) -> None:
    mark("send-once")
    die()


@cron.task(delivery="at_least_once", attempts=ATTEMPTS)
def send_again(n: int) -> None:
    mark("send-again")
    die()


@cron.job(every="1000d")
def digest(run: Run) -> None:
    note("stamped")
    run.defer_many(poison, [{"n": n} for n in range(3)])
    mark("digest")
    if os.environ.get("DIE") == "inside":
        die()


def work(task: str, attempts: int) -> None:
    state = this_state()
    found = db.session.execute(
        db.text("SELECT id, args FROM procrastinate_jobs WHERE task_name = :task ORDER BY id"),
        {"task": task},
    ).all()
    db.session.rollback()
    for number, args in found:
        delivered = Delivered(number, attempts, args)
        with suppress(Redeliver, GivenUp):
            work_off(app, state, state.tasks.get(task), delivered, lambda: False)


if __name__ == "__main__":
    url, command, name, *more = sys.argv[1:]
    app = Flask("tasks")
    app.config.update(SQLALCHEMY_DATABASE_URI=url, CRONLOCK_SECRET="a-secret-for-the-tests-only")
    db.init_app(app)
    cron.init_app(app)
    with app.app_context():
        if command == "job":
            cron.run(name)
            if os.environ.get("DIE") == "after":
                die()
        else:
            work(name, int(more[0]))
