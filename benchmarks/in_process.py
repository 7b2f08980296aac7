"""Runs in this process: skipped, won, and work under a lock alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

import psycopg
from flask import Flask

from flask_cronlock import Outcome, Ran, Skipped
from sample_app.extensions import cron, db

from . import by_hand
from .app import HOUR, create_app
from .rounds import Case, Way
from .server import Database

OURS, BY_HAND, BARE = "Flask-CronLock", "Flask-SQLAlchemy by hand", "bare psycopg"


@contextmanager
def cases(database: Database) -> Iterator[tuple[list[Case], psycopg.Connection[Any]]]:
    """Set up the app, a bare connection, and one of somebody else's that holds a lock."""
    app = create_app(database.url)
    with database.connect() as bare, database.connect() as holder:
        bare.execute(by_hand.TABLE)
        bare.commit()
        holder.execute(by_hand.TRY_BARE, {"job": "held"})
        with app.app_context():
            db.create_all()
            runs = Runs(app, bare)
            runs.win_once("ran")
            cases = [
                runs.case("skipped, already ran", "already ran", lambda: repeat("ran")),
                runs.case("skipped, running elsewhere", "already running", lambda: repeat("held")),
                runs.case("won, an empty job", "ran", lambda: map("win-{}".format, count())),
                runs.case_of_lock("with_lock, empty work"),
            ]
            yield cases, bare
            db.session.remove()
            db.engine.dispose()


@dataclass(frozen=True)
class Runs:
    """One app and one bare connection, with which the same runs are made in each way."""

    app: Flask
    bare: psycopg.Connection[Any]

    def win_once(self, job: str) -> None:
        """Use up the slot of *job*, in our table and in the other."""
        slot = by_hand.newest_slot(HOUR)
        won = word(cron.run(job)), by_hand.run_bare(self.bare, job, slot)
        assert won == ("ran", "ran"), won

    def case(self, name: str, expected: str, jobs: Callable[[], Iterator[str]]) -> Case:
        """Return the runs of *jobs*, each of which must end as *expected*."""
        slot = by_hand.newest_slot(HOUR)
        ours = prefixed("", jobs())
        hand, driver = prefixed("hand-", jobs()), prefixed("bare-", jobs())
        return Case(
            name,
            {
                OURS: self.way(lambda: word(cron.run(next(ours))), expected),
                BY_HAND: self.way(lambda: by_hand.run(db.session(), next(hand), slot), expected),
                BARE: checked(lambda: by_hand.run_bare(self.bare, next(driver), slot), expected),
            },
        )

    def case_of_lock(self, name: str) -> Case:
        def ours() -> str:
            return word(cron.with_lock("alone", lambda session: None))

        return Case(
            name,
            {
                OURS: self.way(ours, "ran"),
                BY_HAND: self.way(lambda: by_hand.with_lock(db.session(), "alone"), "ran"),
                BARE: checked(lambda: by_hand.with_lock_bare(self.bare, "alone"), "ran"),
            },
        )

    def way(self, call: Callable[[], str], expected: str) -> Way:
        """Return *call* in an app context of its own, as a request has one."""

        def in_context() -> str:
            with self.app.app_context():
                return call()

        return checked(in_context, expected)


def prefixed(prefix: str, jobs: Iterator[str]) -> Iterator[str]:
    """Keep the won jobs of two ways apart that share a table."""
    return (prefix + job if job.startswith("win-") else job for job in jobs)


def checked(call: Callable[[], str], expected: str) -> Way:
    def way() -> None:
        if (found := call()) != expected:
            raise RuntimeError(f"{found!r}, not {expected!r}")

    return way


def word(outcome: Outcome) -> str:
    match outcome:
        case Ran(_):
            return "ran"
        case Skipped(reason):
            return reason.value
    return repr(outcome)
