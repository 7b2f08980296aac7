"""What belongs to one app; kept beside it, so that one extension object serves several apps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from weakref import WeakKeyDictionary

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import Session

from .config import Config
from .durations import Duration, parse_duration
from .exceptions import ConfigError
from .exclusive import work_exclusively
from .jobs import Registry, checked_timeout
from .ledger import Ledger
from .locks import LockName
from .results import Outcome, Ran, Skipped
from .runner import Runner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AppState:
    """An app's settings and all that runs need; it keeps no reference to the app."""

    db: SQLAlchemy
    jobs: Registry
    ledger: Ledger
    config: Config

    def run(
        self, trigger: str, name: str, slot: datetime | None = None, force: bool = False
    ) -> Outcome:
        """Run a job of the current app on behalf of *trigger*."""
        runner = Runner(self.db, self.config, self.ledger)
        return runner.run(this_app(), self.jobs.get(name), trigger, slot, force)

    def with_lock(
        self,
        name: LockName,
        work: Callable[[Session], T],
        timeout: Duration | None = None,
        wait: Duration | None = None,
    ) -> Ran[T] | Skipped:
        """Call *work* under the lock *name*."""
        limit = self.config.timeout if timeout is None else checked_timeout(timeout)
        waits = None if wait is None else parse_duration(wait, "wait")
        return work_exclusively(this_app(), self.db, self.config, name, work, limit, waits)


_states: WeakKeyDictionary[Flask, AppState] = WeakKeyDictionary()


def this_app() -> Flask:
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    return app


def add_state(app: Flask, state: AppState) -> None:
    _states[app] = state


def this_state() -> AppState:
    """Return the current app's state.

    :raises ConfigError: for an app that no CronLock was set up for.
    """
    state = _states.get(this_app())
    if state is None:
        raise ConfigError("call cron.init_app(app) for this app first")
    return state
