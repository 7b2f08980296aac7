"""What belongs to one app; kept beside it, so that one extension object serves several apps."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Table

from .config import Config
from .exceptions import ConfigError
from .instance import with_pid
from .ledger import Ledger
from .limits import SHORT_TIMEOUT
from .queue.records import Records
from .queue.requests import Requests
from .queue.tasks import Tasks
from .registry import Registry
from .transaction import GuardedTransaction


@dataclass(frozen=True, slots=True)
class AppState:
    """An app's settings and all that its runs need; it keeps no reference to the app."""

    db: SQLAlchemy
    jobs: Registry
    ledger: Ledger
    config: Config
    tasks: Tasks
    records: Records
    requests: Requests

    def brief(self) -> GuardedTransaction:
        """Return a transaction for a look or a record of our own; it needs an app context."""
        return GuardedTransaction(self.db.engine, SHORT_TIMEOUT, with_pid(self.config.instance))

    @property
    def tables(self) -> list[Table]:
        """All of ours in the app's metadata."""
        return [*self.ledger.tables, self.records.table, self.requests.table]


_states: WeakKeyDictionary[Flask, AppState] = WeakKeyDictionary()


def this_app() -> Flask:
    """Return the current app itself, not the proxy for it."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    return app


def add_state(app: Flask, state: AppState) -> None:
    """Keep *state* for as long as *app* lives."""
    _states[app] = state


def this_state() -> AppState:
    """Return the current app's state.

    :raises ConfigError: for an app that no CronLock was set up for.
    """
    state = _states.get(this_app())
    if state is None:
        raise ConfigError("call cron.init_app(app) for this app first")
    return state
