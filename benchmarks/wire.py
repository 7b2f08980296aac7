"""What goes over the wire and into the WAL for one operation; these figures do not vary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import psycopg

from sample_app.extensions import db

from .in_process import BARE
from .rounds import Case, Way
from .server import Database

SAMPLES = 5


@dataclass(frozen=True)
class Count:
    """Round trips, and bytes of WAL, of one operation, by way."""

    name: str
    trips: Mapping[str, int]
    wal: Mapping[str, int]


def count(case: Case, database: Database, bare: psycopg.Connection[Any], batch: int) -> Count:
    """Count in each way, after a batch that is not counted."""
    trips, wal = {}, {}
    for name, way in case.ways.items():
        for _ in range(batch):
            way()
        trips[name] = round_trips(bare if name == BARE else pooled(), way)
        with database.connect(autocommit=True) as watch:
            wal[name] = wal_bytes(watch, way, batch)
    return Count(case.name, trips, wal)


def pooled() -> psycopg.Connection[Any]:
    """Return the driver's connection that is in the app's pool; with one thread it is the only."""
    with db.engine.connect() as connection:
        driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def round_trips(connection: psycopg.Connection[Any], way: Way) -> int:
    """Count how often the server said that it is ready again; libpq writes the trace."""
    with tempfile.TemporaryFile() as trace:
        connection.pgconn.trace(trace.fileno())
        try:
            way()
        finally:
            connection.pgconn.untrace()
        trace.seek(0)
        return sum(b"ReadyForQuery" in line for line in trace)


def wal_bytes(watch: psycopg.Connection[Any], way: Way, batch: int) -> int:
    """Return the bytes for one operation; the median, since the server writes some of its own."""

    def position() -> Any:
        row = watch.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        assert row
        return row[0]

    return round(median(_growth(position, way, batch) for _ in range(SAMPLES)))


def _growth(position: Callable[[], Any], way: Way, batch: int) -> float:
    before = position()
    for _ in range(batch):
        way()
    return float(position() - before) / batch
