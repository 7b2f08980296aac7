"""Fresh databases on the suite's own PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from sample_app.embedded import temporary

Server = Any

ADVISORY_LOCKS = """
pg_locks WHERE locktype = 'advisory'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""What to select FROM, for the advisory locks in the database that one is connected to."""


@dataclass(frozen=True)
class Database:
    """One database of *server*, seen directly; never through a pooler."""

    server: Server
    name: str

    @property
    def url(self) -> str:
        return str(self.server.url(self.name))

    @property
    def conninfo(self) -> str:
        return str(self.server.conninfo(self.name))

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Return an autocommit connection, for looking on from outside."""
        return psycopg.connect(self.conninfo, autocommit=True, **options)

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        return self.query(statement, *values)[0][0]

    def advisory_locks(self) -> int:
        """Return how many advisory locks are held in this database."""
        return int(self.value(f"SELECT count(*) FROM {ADVISORY_LOCKS}"))

    def emptied(self) -> Database:
        """Delete the rows of all tables: for tests that share it, and change no table."""
        tables = self.value(
            "SELECT string_agg(quote_ident(tablename), ', ')"
            " FROM pg_tables WHERE schemaname = 'public'"
        )
        if tables:
            self.query(f"TRUNCATE {tables} RESTART IDENTITY")
        return self


@contextmanager
def fresh_database(server: Server, like: str = "template1") -> Iterator[Database]:
    """Make a database *like* another one, and drop it in the end."""
    name = f"test_{uuid4().hex[:12]}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as admin:
        admin.execute(create.format(sql.Identifier(name), sql.Identifier(like)))
    try:
        yield Database(server, name)
    finally:
        with psycopg.connect(server.conninfo("postgres"), autocommit=True) as admin:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            admin.execute(drop.format(sql.Identifier(name)))


__all__ = ["Database", "Server", "fresh_database", "temporary"]
