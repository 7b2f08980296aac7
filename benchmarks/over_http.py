"""The same through HTTP: gunicorn with one sync worker, and one client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count, repeat

from sample_app.extensions import db
from sample_app.instance import HOST, serving

from . import by_hand
from .app import SECRET, create_app
from .in_process import BY_HAND, OURS, checked
from .rounds import Case, Way
from .server import Database

EMPTY = "empty view"
GUNICORN = ("gunicorn", "--worker-class=sync", "--workers=1", "benchmarks.app:create_app()")


@contextmanager
def cases(database: Database) -> Iterator[list[Case]]:
    """Start the app on gunicorn; its tables are made here."""
    with create_app(database.url).app_context(), database.connect() as connection:
        db.create_all()
        db.engine.dispose()
        connection.execute(by_hand.TABLE)
    settings = {"DATABASE_URL": database.url, "CRON_SECRET": SECRET}
    with serving("benchmark", GUNICORN, settings) as instance:
        instance.wait_until_ready()
        client = Client(instance.port)
        for path in ("/api/cron/ran", "/by-hand/ran"):
            client.way(repeat(path), "ran")()
        yield [
            Case(
                name,
                {
                    OURS: client.way((f"/api/cron/{job}" for job in jobs()), expected),
                    BY_HAND: client.way((f"/by-hand/{job}" for job in jobs()), expected),
                    EMPTY: client.way(repeat("/empty"), "empty"),
                },
            )
            for name, expected, jobs in (
                ("skipped, already ran", "already ran", lambda: repeat("ran")),
                ("won, an empty job", "ran", lambda: map("win-{}".format, count())),
            )
        ]
        client.connection.close()


class Client:
    """One HTTP connection, kept as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self.connection = HTTPConnection(HOST, port, timeout=60)

    def way(self, paths: Iterator[str], expected: str) -> Way:
        return checked(lambda: self.post(next(paths)), expected)

    def post(self, path: str) -> str:
        """Return the word for what became of it."""
        self.connection.request("POST", path, headers={"Authorization": f"Bearer {SECRET}"})
        response = self.connection.getresponse()
        body = json.loads(response.read())
        if response.status != 200:
            return f"status {response.status}: {body}"
        return str(body.get("reason") or body.get("outcome", "empty"))
