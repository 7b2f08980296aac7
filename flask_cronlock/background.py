"""A clock in a thread of a process that serves."""

from __future__ import annotations

import atexit
import logging
import threading
from datetime import timedelta
from weakref import WeakKeyDictionary

import click
from flask import Flask
from flask.cli import ScriptInfo
from flask.helpers import get_debug_flag
from werkzeug.serving import is_running_from_reloader

from .clock import Clock
from .state import AppState

logger = logging.getLogger("flask_cronlock")


class BackgroundClock:
    """A clock in a daemon thread; it stops with the process, its runs within their grace."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._stopping = clock, False
        self._thread = threading.Thread(target=clock.run, name="cronlock-clock", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Tell whether it goes; not in a process that was forked off since it began."""
        return self._thread.is_alive() and not self._stopping

    def stop(self) -> None:
        """Fire no more slot, and return when the last run has ended, or its grace has."""
        atexit.unregister(self.stop)
        if self.running:
            self._stopping = True
            self._clock.stop()
            self._thread.join(self._clock.grace.total_seconds() + 1)


_clocks: WeakKeyDictionary[Flask, BackgroundClock] = WeakKeyDictionary()
_starting = threading.Lock()


def start_clock(
    app: Flask, state: AppState, workers: int | None, grace: timedelta
) -> BackgroundClock | None:
    """Start the clock of *app* in this process, if it serves and has none yet."""
    if reason := _why_not(app):
        logger.info(
            "No clock was started in this process: %s.",
            reason,
            extra={"action": "clock_not_started"},
        )
        return None
    with _starting:
        known = _clocks.get(app)
        if known is None or not known.running:
            known = _clocks[app] = BackgroundClock(Clock(app, state, workers, grace))
    return known


def _why_not(app: Flask) -> str | None:
    """Return why this process is not one to run jobs in.

    An app factory is called by every command of ``flask``, a migration too, and by tests. The
    reloader's parent never loads the code that its child serves after a change.
    """
    if app.testing:
        return "the app is being tested"
    context = click.get_current_context(silent=True)
    if context is None or context.find_object(ScriptInfo) is None:
        return None
    if context.command.name != "run":
        return f"it is there for the command {context.info_name!r}"
    reloads = context.params.get("reload")
    reloads = get_debug_flag() if reloads is None else reloads
    if reloads and not is_running_from_reloader():
        return "it is the reloader's parent"
    return None
