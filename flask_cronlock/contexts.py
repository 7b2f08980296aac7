"""The app context of a run: its own, and never one inside another."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from flask import Flask
from flask.ctx import AppContext
from flask_sqlalchemy import SQLAlchemy

from .exceptions import NestedRun

logger = logging.getLogger("flask_cronlock")


@dataclass(slots=True)
class Inside:
    """The run or lock that a context is inside of; a copied context can outlive it."""

    name: str
    over: bool = False


_inside: ContextVar[Inside | None] = ContextVar("cronlock_inside", default=None)
if hasattr(os, "register_at_fork"):
    # A forked child's connections are its own: no lock of its parent's is granted to it again.
    os.register_at_fork(after_in_child=lambda: _inside.set(None))


@contextmanager
def fresh_context(app: Flask, db: SQLAlchemy) -> Iterator[None]:
    """Push a new app context, with the caller's ``db.session`` set aside until it is popped.

    Under the app's own ``scopefunc`` the new context would share that session, and remove it.
    """
    registry = db.session.registry
    callers = registry() if registry.has() else None
    try:
        registry.clear()
        context = app.app_context()
        try:
            context.push()
            yield
        finally:
            _pop(context)
    finally:
        if callers is not None:
            registry.set(callers)


def _pop(context: AppContext) -> None:
    """Pop *context*; the run has been committed or rolled back, and its outcome stands."""
    try:
        context.pop()
    except Exception:
        logger.exception(
            "A teardown function of the app raised; the run's outcome stands.",
            extra={"action": "teardown_failed"},
        )


@contextmanager
def own_context(app: Flask, db: SQLAlchemy, name: str) -> Iterator[None]:
    """Push an app context that shares no session, snapshot or re-entrant lock with the caller.

    :raises NestedRun: inside another run or lock, where PostgreSQL would grant the lock again.
    """
    if (outer := _inside.get()) is not None and not outer.over:
        raise NestedRun(f"{name!r} inside {outer.name!r}")
    inside = Inside(name)
    try:
        _inside.set(inside)
        with fresh_context(app, db):
            yield
    finally:
        inside.over = True
