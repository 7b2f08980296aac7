"""Deferring a mail for each user: in a run, by hand, and by Procrastinate's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import Connection

from flask_cronlock import Ran, Run

from ..rounds import Case, Timing, Way
from ..server import Database
from . import by_hand
from .app import BATCH, TIMES, create_app, cron, db, mail, mails, set_up, slots, stamped

FROM, ONE_BY_ONE = "run.defer_from", "run.defer, one by one"
SHARE_OF_ROWS, SHARE_OF_TRIPS = 5, 50
"""What takes a row of the queue, or a trip to the server, for each mail defers a part of them."""
USERS = "INSERT INTO users (last_digest_at) SELECT NULL FROM generate_series(1, %(users)s)"
DEFERRED = """
SELECT count(*), coalesce(sum(coalesce(jsonb_array_length(args -> 'items'), 1)), 0)
FROM procrastinate_jobs
"""


@dataclass(frozen=True)
class Entry:
    """One way of deferring, and how many mails it deferred, in how many rows of the queue."""

    name: str
    mails: int
    call: Way
    pure: str | None = None
    """The statement by hand that does the same."""
    rows: int = 0


@dataclass(frozen=True)
class Deferred:
    """What was measured: the seconds for each mail, by way."""

    users: int
    entries: list[Entry]
    timing: Timing


def measure(database: Database, users: int, rounds: int) -> Deferred:
    """Defer a mail to each of *users* in every way, *rounds* times."""
    app = create_app(database.url)
    set_up(app)
    with app.app_context(), database.connect(autocommit=True) as cleaner:
        cleaner.execute(USERS, {"users": users})
        bench = Bench(users, cleaner)
        bench.clean()
        with db.engine.connect() as connection:
            entries = list(_entries(bench, connection))
            case = Case("deferring", {entry.name: bench.watched(entry) for entry in entries})
            timing = case.time(rounds, batch=1, after=bench.check)
        db.engine.dispose()
    each = {
        entry.name: [seconds / entry.mails for seconds in timing.seconds[entry.name]]
        for entry in entries
    }
    counted = [replace(entry, rows=bench.rows[entry.name]) for entry in entries]
    return Deferred(users, counted, replace(timing, seconds=each))


class Bench:
    """Where all ways find the same tables, and each is held to having deferred what it should."""

    def __init__(self, users: int, cleaner: psycopg.Connection[Any]) -> None:
        self.users, self._cleaner, self.slots = users, cleaner, slots()
        self.rows: dict[str, int] = {}
        self._last: Entry

    def watched(self, entry: Entry) -> Way:
        def way() -> None:
            self._last = entry
            entry.call()

        return way

    def check(self) -> None:
        """Count what the last way deferred, and clean up."""
        row = self._cleaner.execute(DEFERRED).fetchone()
        assert row
        if row[1] != self._last.mails:
            raise RuntimeError(f"{self._last.name}: {row[1]} mails, not {self._last.mails}")
        self.rows[self._last.name] = row[0]
        self.clean()

    def clean(self) -> None:
        """Leave to each way the same tables and the same work on the WAL."""
        for statement in (
            "TRUNCATE procrastinate_jobs CASCADE",
            "VACUUM ANALYZE users",
            "CHECKPOINT",
        ):
            self._cleaner.execute(statement)

    def share(self, part: int) -> int:
        return max(self.users // part, 1)

    def on(self, connection: Connection, work: Callable[[datetime], object]) -> Way:
        """Return a way that is a transaction on the bare *connection*."""

        def way() -> None:
            with connection.begin():
                work(next(self.slots))

        return way

    def in_run(self, name: str, work: Callable[[Run], object]) -> Way:
        """Return a way that is a job's: the run, its claim and its commit are timed, too."""
        cron.job(name, **TIMES)(work)

        def way() -> None:
            outcome = cron.run(name, slot=next(self.slots))
            if not isinstance(outcome, Ran):
                raise RuntimeError(f"{name}: {outcome}")

        return way


def _entries(bench: Bench, connection: Connection) -> Iterator[Entry]:
    for batch, users in ((BATCH, bench.users), (1, bench.share(SHARE_OF_ROWS))):
        yield from _sets(bench, connection, batch, users)
    chunked, few = bench.share(SHARE_OF_ROWS), bench.share(SHARE_OF_TRIPS)

    def one_by_one(run: Run) -> None:
        for item in mails(few):
            run.defer(mail, **item)

    def in_chunks(_: datetime) -> None:
        by_hand.defer_in_chunks(connection, mails(chunked))

    def each(_: datetime) -> None:
        by_hand.defer_each(connection, mails(few))

    name = f"Procrastinate's batch_defer, {by_hand.CHUNK:,} a call"
    yield Entry(ONE_BY_ONE, few, bench.in_run("one-by-one", one_by_one))
    yield Entry(name, chunked, bench.on(connection, in_chunks))
    yield Entry("Procrastinate's defer, one by one", few, bench.on(connection, each))


def _sets(bench: Bench, connection: Connection, batch: int, users: int) -> Iterator[Entry]:
    """Yield the ways that take many mails at once, *batch* of them a row of the queue."""

    def by_statement(slot: datetime) -> None:
        by_hand.defer_all(connection, users, batch, slot)

    def from_update(run: Run) -> None:
        run.defer_from(mail, stamped(run, users), batch=batch)

    def many(run: Run) -> None:
        run.defer_many(mail, mails(users), batch=batch)

    pure = named("one SQL statement", batch)
    yield Entry(pure, users, bench.on(connection, by_statement))
    yield Entry(named(FROM, batch), users, bench.in_run(f"defer-from-{batch}", from_update), pure)
    yield Entry(named("run.defer_many", batch), users, bench.in_run(f"many-{batch}", many), pure)


def named(way: str, batch: int) -> str:
    return f"{way}, {batch} mails a row" if batch > 1 else f"{way}, a mail a row"
