"""For an app's own tests: a clock that they move, in the place of the database's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock

from flask import Flask

from .contexts import own_context
from .durations import Duration, parse_duration
from .exceptions import ConfigError
from .injected import injected
from .lookout import AGAIN, LOOK, Firing, Lookout
from .results import Failed, Outcome
from .runner import run_job
from .state import AppState, this_app, this_state


@contextmanager
def manual_clock(app: Flask, start: datetime | str) -> Iterator[ManualClock]:
    """Let all runs of *app* take their slots and stamps from a clock that stands at *start*.

    It holds for runs in any thread, by ``cron.run``, the test client and the test CLI runner. The
    limits of a run, its timeout above all, stay on real time.

    :param start: an aware datetime, or text such as ``"2024-02-29T23:59:59Z"``.
    :raises ConfigError: unless ``app.testing`` is set; where the app has a manual clock already.
    :raises Unavailable: when the ledger cannot be read.
    """
    with app.app_context():
        app, state = this_app(), this_state()
        engine = state.db.engine
    if not app.testing:
        raise ConfigError(
            "a manual clock is for tests alone: set app.testing = True in them, and nowhere else"
        )
    clock = ManualClock(app, state, start)
    with injected(engine, clock.now):
        clock._oldest()
        yield clock


class ManualClock:
    """A clock that stands still until it is moved; any thread may move and read it."""

    def __init__(self, app: Flask, state: AppState, start: datetime | str) -> None:
        self._app, self._state = app, state
        self._moment = _instant(start)
        self._moving, self._looking = Lock(), Lock()
        with app.app_context():
            self._lookout = Lookout(state.db.engine, state)
        self._pace = 0.0
        """In the place of the process's own time, which paces a lookout."""
        self._until: datetime | None = None
        """The time of the newest call of :meth:`fire`: what began later is not fired yet."""

    def now(self) -> datetime:
        """Return its time, in UTC."""
        return self._moment

    def tick(self, duration: Duration) -> datetime:
        """Move it ahead, by a timedelta, seconds, or text such as ``"90s"``; return its time."""
        step = parse_duration(duration, "tick")
        with self._moving:
            self._moment = _instant(self._moment + step)
            return self._moment

    def move_to(self, moment: datetime | str) -> datetime:
        """Move it ahead or back to *moment*; return its time."""
        instant = _instant(moment)
        with self._moving:
            self._moment = instant
        return instant

    def fire(self) -> list[Outcome]:
        """Run what ``flask cron clock`` would now, begun where this clock was: return the outcomes.

        The runs are made on this thread, the oldest slot first, until none is open that had begun
        at the call. A run that failed is in the list; it is made again by a later call, once this
        clock has moved past its time to be tried again. Called in several threads at once, it makes
        each run in one of them.

        :raises NestedRun: inside a run.
        :raises ConfigError: when a job was registered after this clock was made.
        :raises Unavailable: when no run could be begun.
        """
        self._refuse_new_jobs()
        outcomes: list[Outcome] = []
        with self._looking:
            self._pace += LOOK
            self._until = self.now()
        while (firing := self._oldest()) is not None:
            outcomes.append(self._run(firing))
        return outcomes

    def _refuse_new_jobs(self) -> None:
        zone, known = self._state.config.timezone, {job.name for job in self._lookout.schedules}
        for job in self._state.jobs:
            if job.name not in known and job.schedule(zone) is not None:
                raise ConfigError(
                    f"the manual clock does not know {job.name!r}: register jobs before it is made"
                )

    def _oldest(self) -> Firing | None:
        """Return the oldest slot that is to be fired now; all others are left as they were."""
        alone = own_context(self._app, self._state.db, "a manual clock")
        with self._app.app_context(), alone, self._looking:
            found = self._lookout.look(self._pace)
            begun = [firing for firing in found if self._has_begun(firing)]
            oldest = min(begun, key=lambda firing: firing.slot.at.astimezone(UTC), default=None)
            for firing in found:
                firing.entry.busy = firing is oldest
            return oldest

    def _has_begun(self, firing: Firing) -> bool:
        return self._until is not None and firing.slot.at.astimezone(UTC) <= self._until

    def _run(self, firing: Firing) -> Outcome:
        job, slot = firing.entry.job, firing.slot
        try:
            with self._app.app_context():
                outcome = run_job(self._app, self._state, job, "clock", slot.at)
        except BaseException as error:
            self._take_in(firing, error)
            raise
        self._take_in(firing, outcome)
        return outcome

    def _take_in(self, firing: Firing, result: Outcome | BaseException) -> None:
        with self._looking:
            self._lookout.take_in(firing, result, self._pace)
            if isinstance(result, Failed):
                self._pace += AGAIN


def _instant(moment: datetime | str) -> datetime:
    """Return *moment* in UTC."""
    cure = 'give an aware datetime, or text with its offset such as "2024-02-29T23:59:59Z"'
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        if isinstance(found, datetime) and found.utcoffset() is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ConfigError(f"{moment!r:.80} is no time for a manual clock: {cure}")
