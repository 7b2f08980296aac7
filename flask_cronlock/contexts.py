"""An app context of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask

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
