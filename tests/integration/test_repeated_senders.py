"""A sender that calls at least once: of all its calls for a morning, one writes the digests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from flask_cronlock.testing import manual_clock

from ..support.databases import Database
from ..support.named import told
from ..support.samples import sample_on
from ..support.slots import at
from ..support.worlds import SECRET

MORNING = at("2031-06-10T05:00:00Z")
"""Seven o'clock in the zone of the job."""
AGAIN_AFTER = [timedelta(seconds=16), timedelta(seconds=60), timedelta(hours=6)]
DAY = timedelta(days=1)
SUBSCRIBERS = 20


@pytest.fixture
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, SUBSCRIBERS, 4, CRONLOCK_SECRET=SECRET, TESTING=True) as app:
        yield app


def call(app: Flask) -> object:
    headers = {"Authorization": f"Bearer {SECRET}"}
    return told(app.test_client().post("/api/cron/daily-digest", headers=headers))


def stamps(database: Database) -> list[tuple[Any, ...]]:
    """Return each subscriber's stamp, and the transaction that wrote the row last."""
    return database.query(
        "SELECT id, last_digest_at, xmin::text FROM users WHERE digest_enabled ORDER BY id"
    )


def digests(database: Database, slot: datetime) -> int:
    return int(database.value("SELECT count(*) FROM outbox WHERE slot = %s", slot))


def test_a_digest_is_written_and_its_subscribers_stamped_once_a_morning(
    app: Flask, database: Database
) -> None:
    with manual_clock(app, MORNING - DAY / 2) as clock:
        for morning in (MORNING, MORNING + DAY):
            clock.move_to(morning)
            assert call(app) == "ran"
            stamped = stamps(database)
            assert {stamp for _, stamp, _ in stamped} == {morning}

            for later in AGAIN_AFTER:
                clock.move_to(morning + later)
                assert call(app) == "already ran"
            assert stamps(database) == stamped
            assert digests(database, morning) == SUBSCRIBERS
