"""A PostgreSQL of our own that flushes what it commits, as in production."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from sample_app.embedded import TemporaryServer, temporary

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
# What the server does on its own would fall into one way's time, or its WAL, by chance.
CALM = {"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB"}


@dataclass(frozen=True)
class Server:
    """A running server."""

    temporary: TemporaryServer
    version: str


@dataclass(frozen=True)
class Database:
    """One database."""

    url: str
    conninfo: str

    def connect(self, autocommit: bool = False) -> psycopg.Connection[Any]:
        """Return a connection that prepares nothing, as a transaction pooler wants it."""
        return psycopg.connect(self.conninfo, autocommit=autocommit, prepare_threshold=None)


@contextmanager
def durable() -> Iterator[Server]:
    """Run a server until the end of the block.

    :raises RuntimeError: when it does not have the settings that make a commit cost what it costs.
    """
    with temporary(DURABLE | CALM) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for name, wanted in DURABLE.items():
                if (value := _show(connection, name)) != wanted:
                    raise RuntimeError(f"{name} is {value!r}, not {wanted!r}")
            version = _show(connection, "server_version").split()[0]
        yield Server(server, version)


def _show(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert row
    return str(row[0])


@contextmanager
def fresh_database(server: Server) -> Iterator[Database]:
    """Make a database for one section, so that none finds another's tables grown."""
    place = server.temporary
    with psycopg.connect(place.conninfo(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE benchmark")
        try:
            yield Database(place.url("benchmark"), place.conninfo("benchmark"))
        finally:
            drop = sql.SQL("DROP DATABASE benchmark WITH (FORCE)")
            admin.execute(drop)
            admin.execute("CHECKPOINT")
