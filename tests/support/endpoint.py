"""Jobs for the endpoint, and what every answer of it keeps to, whatever it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any

from .worlds import World

LONGEST_BODY = 1024


def body_of(response: Any) -> dict[str, Any]:
    """Return the JSON body of *response*, once all that holds for every answer was checked."""
    assert not 300 <= response.status_code < 400
    assert "Location" not in response.headers
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert len(response.data) < LONGEST_BODY
    text = response.get_data(as_text=True)
    for telling in ("Traceback", "SELECT", "INSERT", "psycopg", "sqlalchemy", "<html"):
        assert telling not in text
    body = json.loads(text)
    assert isinstance(body, dict)
    assert ("error" in body) == (response.status_code >= 400 and "skipped" not in body)
    return body


def job(world: World, work: Callable[[], Any] = lambda: None, name: str = "x", **how: Any) -> None:
    """Register *work* as a job, by default one of a daily schedule."""

    def function() -> Any:
        world.mark()
        return work()

    world.cron.job(name, **({"every": "1d"} | how))(function)


@contextmanager
def unreachable() -> Iterator[str]:
    """Yield the URL of a port that is taken, so that no one else listens there, and is deaf."""
    with socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield f"postgresql+psycopg://postgres@127.0.0.1:{deaf.getsockname()[1]}/postgres"
