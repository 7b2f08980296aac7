"""The app context of a run: its own, and never one inside another."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from .exceptions import NestedRun

_inside: ContextVar[str | None] = ContextVar("cronlock_inside", default=None)

logger = logging.getLogger("flask_cronlock")


@contextmanager
def fresh_context(app: Flask, db: SQLAlchemy) -> Iterator[None]:
    """Push a new app context, with the caller's ``db.session`` set aside until it is popped.

    Under the app's own ``scopefunc`` the new context would share that session, and remove it.
    """
    registry = db.session.registry
    callers = registry() if registry.has() else None
    registry.clear()
    context = app.app_context()
    context.push()
    try:
        yield
    finally:
        try:
            context.pop()
        except Exception:
            # The run has been committed or rolled back, and its outcome must not be lost.
            logger.exception(
                "A teardown function of the app raised; the run's outcome stands.",
                extra={"action": "teardown_failed"},
            )
        if callers is not None:
            registry.set(callers)


@contextmanager
def own_context(app: Flask, db: SQLAlchemy, name: str) -> Iterator[None]:
    """Push an app context that shares no session, snapshot or re-entrant lock with the caller.

    :raises NestedRun: inside another run or lock, where PostgreSQL would grant the lock again.
    """
    if (outer := _inside.get()) is not None:
        raise NestedRun(f"{name!r} inside {outer!r}")
    try:
        _inside.set(name)
        with fresh_context(app, db):
            yield
    finally:
        _inside.set(None)
