"""``jobs_app`` in a process that is killed once a statement with KILLED_AFTER in it is answered."""

from __future__ import annotations

import os
import signal
from typing import Any

from sqlalchemy import Engine, event

from .jobs_app import app

__all__ = ["app"]

WORDS = os.environ["KILLED_AFTER"]


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@event.listens_for(Engine, "after_cursor_execute")
def look(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
    if WORDS in statement:
        die()


if WORDS == "COMMIT":
    # A run sends it below SQLAlchemy, and lets SQLAlchemy know when it was answered.
    event.listen(Engine, "commit", die)
