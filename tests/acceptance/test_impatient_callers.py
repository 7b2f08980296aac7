"""A scheduler that gives up and asks again, and hits that wait in a queue after it has gone."""

from __future__ import annotations

import socket
from collections import Counter

import pytest

from ..support.databases import Database
from ..support.instances import Instance, at_once, gunicorn
from ..support.processes import wait_until
from ..support.worlds import SECRET, World

REQUEST = (
    "POST /api/cron/idle HTTP/1.1\r\nHost: app\r\nContent-Length: 0\r\n"
    f"Authorization: Bearer {SECRET}\r\n\r\n"
).encode()


def leave(instance: Instance) -> None:
    """Send a hit whole, and go away without waiting for its answer."""
    with socket.create_connection(("127.0.0.1", instance.port), 20) as stream:
        stream.sendall(REQUEST)


def test_hits_of_callers_that_went_away_and_came_again_run_the_slot_once(
    database: Database, world: World
) -> None:
    with gunicorn(database, "-w", "2", "-k", "sync", "--threads", "1", JOB_SECONDS="4") as web:
        with pytest.raises(TimeoutError):
            web.post("idle", timeout=1)
        wait_until(lambda: world.marks == 1)
        for _ in range(5):
            leave(web)
        meanwhile = web.post("idle")
        wait_until(lambda: world.runs())
        late = at_once([lambda: web.post("idle")] * 3)

    assert meanwhile.status == 200
    assert meanwhile.body["reason"] in ("already running", "already ran")
    assert Counter(answer.body["reason"] for answer in late) == {"already ran": 3}
    assert world.marks == 2  # one beginning, one end
    assert len(world.notes) == 1
    assert world.attempts() == []
    assert database.advisory_locks() == 0
