"""Requests that name their slot in a header, and what becomes of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .endpoint import body_of
from .worlds import SECRET, World

HEADER = "X-CloudScheduler-ScheduleTime"


def post(world: World, named: object, name: str = "x", secret: str = SECRET) -> Any:
    """Call the endpoint with *named* in the header."""
    value = named.isoformat() if isinstance(named, datetime) else str(named)
    headers = {"Authorization": f"Bearer {secret}", HEADER: value}
    return world.app.test_client().post(f"/api/cron/{name}", headers=headers)


def told(response: Any) -> object:
    """Return what became of a request: ``ran``, or the reason why not."""
    body = body_of(response)
    return body.get("reason") or body.get("error") or body["outcome"]


def refuses(world: World, response: Any) -> None:
    """Check that no slot of job ``x`` was found, and that nothing was written."""
    assert response.status_code == 400
    assert body_of(response) == {"job": "x", "error": "Not a slot of this job"}
    assert world.runs() == world.attempts() == []
