"""The app context of a run: its own, and never one inside another."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flask import Flask

from .exceptions import NestedRun

_inside: ContextVar[str | None] = ContextVar("cronlock_inside", default=None)

logger = logging.getLogger("flask_cronlock")


@contextmanager
def fresh_context(app: Flask) -> Iterator[None]:
    """Push a new app context.

    A teardown function of the app's that raises is logged: by then the run has been committed or
    rolled back, and its outcome must not be lost.
    """
    context = app.app_context()
    context.push()
    try:
        yield
    finally:
        try:
            context.pop()
        except Exception:
            logger.exception(
                "A teardown function of the app raised; the run's outcome stands.",
                extra={"action": "teardown_failed"},
            )


@contextmanager
def own_context(app: Flask, name: str) -> Iterator[None]:
    """Push an app context that shares no session, snapshot or re-entrant lock with the caller.

    :raises NestedRun: inside another run or lock, where PostgreSQL would grant the lock again.
    """
    if (outer := _inside.get()) is not None:
        raise NestedRun(f"{name!r} inside {outer!r}")
    token = _inside.set(name)
    try:
        with fresh_context(app):
            yield
    finally:
        _inside.reset(token)
