"""The embedded scheduler: wakes at the slots of all jobs, and runs them as any other hit would.

Any number of clocks may run at once. None of them leads, and none decides whether a slot is run:
the claim does. So one that is killed, frozen, late or doubled neither loses nor doubles a slot.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from flask import Flask

from .lookout import Fired, Firing, Lookout
from .queue.handover import hand_over
from .queue.requests import Queued
from .results import Outcome
from .runner import run_job
from .state import AppState
from .telling import log_words
from .workers import Workers, count_workers

logger = logging.getLogger("flask_cronlock")

PAUSES = (1.0, 2.0, 5.0)
"""Seconds between looks while the database does not answer."""
BUSY_AFTER = 5.0
"""Seconds after which a slot that no worker comes to is told of."""


class Clock:
    """One app's clock: :meth:`run` returns after :meth:`stop`, which any thread may call.

    :param workers: how many jobs may run at once, each on a connection of its own; by default as
        many as the pool has connections for, but no more than 8.
    :param grace: how long runs may go on after :meth:`stop`; then they are cut off.
    :raises ConfigError: when the app's pool has too few connections.
    """

    def __init__(self, app: Flask, state: AppState, workers: int | None, grace: timedelta) -> None:
        self._app, self._state, self.grace = app, state, grace
        with app.app_context():
            self._count = count_workers(state.db.engine.pool, workers)
            self._lookout = Lookout(state.db.engine, state)
        self._inbox: SimpleQueue[tuple[Firing, Fired] | None] = SimpleQueue()
        self._failures = 0
        self._waiting: dict[Firing, float] = {}
        """Since when each firing waits for a worker."""
        self._told_busy = False

    def run(self) -> None:
        """Fire each slot until :meth:`stop`."""
        workers = Workers(self._count)
        jobs = len(self._lookout.schedules)
        _log("clock_started", "The clock began: %d jobs with slots, %d workers.", jobs, self._count)
        pause: float | None = 0.0
        if not self._state.config.enabled:
            _warn("clock_idle", "CRONLOCK_ENABLED is False, so the clock runs no job.")
            pause = None
        while self._take_in(pause):
            pause = self._look(workers)
        if cut_off := workers.close(self.grace.total_seconds()):
            _warn("clock_stopped", "The clock stopped, and cut off %d runs.", cut_off)
        else:
            _log("clock_stopped", "The clock stopped.")

    def stop(self) -> None:
        """Let :meth:`run` come to its end."""
        self._inbox.put(None)

    def _take_in(self, pause: float | None) -> bool:
        """Sleep for *pause* seconds (``None``: for good) or until a run ends; note what ended.

        ``False``: stop.
        """
        try:
            while (ended := self._inbox.get(timeout=pause)) is not None:
                self._lookout.take_in(*ended, time.monotonic())
                pause = 0.0
        except Empty:
            return True
        return False

    def _look(self, workers: Workers) -> float:
        """Look if it is time, send what is open to the workers, and return how long to sleep."""
        self._warn_of_busy_workers()
        if (pause := self._lookout.seconds(time.monotonic())) > 0:
            return pause
        try:
            firings = self._lookout.look(time.monotonic())
        except Exception as error:
            return self._wait_for_database(error)
        if self._failures:
            _log("clock_resumed", "The database answers the clock again.")
        self._failures = 0
        for firing in firings:
            self._waiting[firing] = time.monotonic()
            workers.submit(partial(self._fire, firing))
        return self._lookout.seconds(time.monotonic())

    def _wait_for_database(self, error: Exception) -> float:
        """Tell once that the clock cannot look, and return how long to wait."""
        if not self._failures:
            told, shown = log_words(error, self._state.config.secrets)
            words = "The clock cannot look for slots, which wait: %s"
            _warn("clock_waits", words, told, exc_info=shown)
        self._failures += 1
        self._lookout.read_anew()
        return PAUSES[min(self._failures, len(PAUSES)) - 1]

    def _fire(self, firing: Firing) -> None:
        """Run *firing*, and hand in what became of it, whatever that is."""
        self._waiting.pop(firing, None)
        result: Fired
        try:
            result = self._run(firing)
        except BaseException as error:
            result = error
        self._inbox.put((firing, result))

    def _run(self, firing: Firing) -> Fired:
        job = firing.entry.job
        try:
            with self._app.app_context():
                return self._hand_over(firing) if job.on_worker else self._run_here(firing)
        except BaseException as error:
            told, shown = log_words(error, self._state.config.secrets)
            how = "could not be begun by the clock" if isinstance(error, Exception) else "broke off"
            _warn("clock_failed", "Job %s %s: %s", job.name, how, told, exc_info=shown)
            return error

    def _run_here(self, firing: Firing) -> Outcome:
        job, slot = firing.entry.job, firing.slot
        _log_firing(firing, "The clock fires %s for %s, %d ms late.")
        return run_job(self._app, self._state, job, "clock", slot.at)

    def _hand_over(self, firing: Firing) -> Queued | Outcome:
        """Ask a worker; that one was asked before, and has not run the slot yet, is no news."""
        job, slot = firing.entry.job, firing.slot
        answer = hand_over(self._app, self._state, job, "clock", slot.at)
        if isinstance(answer, Queued) and answer.fresh:
            _log_firing(firing, "The clock had a worker asked to run %s for %s, %d ms late.")
        return answer

    def _warn_of_busy_workers(self) -> None:
        """Tell, once until they are free again, that a slot waits and no worker comes to it."""
        sent = list(self._waiting.values())
        if not sent:
            self._told_busy = False
        elif not self._told_busy and time.monotonic() - min(sent) > BUSY_AFTER:
            words = "All %d workers of the clock are busy, and %d slots wait: give it more workers."
            _warn("clock_busy", words, self._count, len(sent))
            self._told_busy = True


def _log(action: str, words: str, *about: object, **extra: object) -> None:
    logger.info(words, *about, extra={"action": action, **extra})


def _log_firing(firing: Firing, words: str) -> None:
    job, slot = firing.entry.job.name, firing.slot.at.isoformat()
    about = {"job": job, "slot": slot, "late_ms": firing.late_ms(time.monotonic())}
    _log("clock_fired", words, *about.values(), **about)


def _warn(action: str, words: str, *about: object, exc_info: Any = None) -> None:
    logger.warning(words, *about, exc_info=exc_info, extra={"action": action})
