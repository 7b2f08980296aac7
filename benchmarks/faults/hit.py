"""What every tool is asked for, and what it is given to do it with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from sqlalchemy import Engine, create_engine

JOBS = 2
INTERVAL = 0.3
"""Seconds from one slot to the next; of one job's, twice as many."""
LIMIT = 3.0
"""Seconds that a run may take, where a tool has a limit: a timeout, a lease, a time to live."""
FIRST = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass
class Hit:
    """One wish to run a job for a slot; *run* is the name of its body, if it comes to one."""

    job: str
    slot: str
    run: str = field(default_factory=lambda: uuid4().hex)


class Tool(Protocol):
    """A tool in one worker."""

    def fire(self, hit: Hit) -> str:
        """Run the job or not, and say what came of it; raise where the tool does."""


@runtime_checkable
class ByItself(Protocol):
    """A tool that keeps the time."""

    def start(self, began: float, ask: Callable[[Hit], None]) -> None:
        """Call *ask* whenever a slot is due; slot 0 is when the wall clock shows *began*."""


def numbered(number: int) -> tuple[str, str]:
    """Return job and slot of that number: the jobs take turns, and each has a slot a second."""
    slot = FIRST + timedelta(seconds=number // JOBS)
    return f"job-{number % JOBS}", slot.isoformat()


@dataclass(frozen=True)
class Place:
    """Where one worker works; it goes to it as JSON."""

    tool: str
    who: str
    url: str
    """The database, behind PgBouncer."""
    redis: str
    """The socket of Redis, if it is there."""
    history: str
    slots: int

    def told(self) -> str:
        return json.dumps(asdict(self))

    def engine(self, **more: Any) -> Engine:
        """Return an engine as one gives it to an app behind a pooler."""
        plain = {"prepare_threshold": None}
        return create_engine(self.url, pool_pre_ping=True, connect_args=plain, **more)
