"""The extension object that an app imports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import Session

from .background import BackgroundClock, start_clock
from .borrowed import mind_engine
from .cli import cron_commands
from .config import Config
from .durations import Duration, parse_duration
from .exceptions import ConfigError
from .exclusive import work_exclusively
from .ledger import Ledger
from .locks import LockName, lock_text
from .queue.deferring import Deferring
from .queue.extra import teach_alembic
from .queue.records import Records
from .queue.requests import Requests
from .queue.tasks import Tasks
from .registering import Registering
from .registration import checked_timeout, refuse_deferred
from .registry import Registry
from .results import Outcome, Ran, Skipped
from .runner import run_job
from .state import AppState, add_state, this_app, this_state
from .views import register_views
from .watch import watch_transactions

P = ParamSpec("P")
T = TypeVar("T")


class CronLock(Registering, Deferring):
    """Run scheduled jobs exactly once per slot, in any number of instances of an app.

    :param db: the app's Flask-SQLAlchemy object; our tables join its metadata, and a run takes one
        connection of its default engine.
    :param app: set up this app now; else call :meth:`init_app`.
    :param settings: each the twin of a ``CRONLOCK_`` key of the app's configuration, in lower
        case, over which it wins: ``namespace``, ``url_prefix``, ``timezone``, ``timeout``, …
    """

    def __init__(self, db: SQLAlchemy, app: Flask | None = None, **settings: Any) -> None:
        if not isinstance(db, SQLAlchemy):
            raise ConfigError("give the app's Flask-SQLAlchemy object first: CronLock(db, app)")
        self.db = db
        self.jobs = Registry()
        self.ledger = Ledger(db.metadata)
        self.tasks = Tasks()
        self.records = Records(db.metadata)
        self.requests = Requests(db.metadata)
        self._settings = Config.checked_names(settings)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Set up *app*: its endpoint and its ``flask cron`` commands. The database is not touched.

        :raises ConfigError: for a setting that cannot be used.
        """
        if "cronlock" in app.extensions:
            raise ConfigError(
                "this app has a CronLock already; import that one and register jobs on it"
            )
        if "sqlalchemy" not in app.extensions:
            raise ConfigError("call db.init_app(app) before cron.init_app(app)")
        config = Config.load(app.config, self._settings)
        self.tasks.check_queues(config.namespace)
        with app.app_context():
            engine = self.db.engines.get(None)
        if engine is None:
            raise ConfigError("set SQLALCHEMY_DATABASE_URI: runs take a connection of that engine")
        mind_engine(engine)
        watch_transactions(engine)
        queue = self.tasks, self.records, self.requests
        add_state(app, AppState(self.db, self.jobs, self.ledger, config, *queue))
        app.extensions["cronlock"] = self
        register_views(app, config)
        if app.cli.commands.get("cron", cron_commands) is not cron_commands:
            raise ConfigError("the app has commands of its own named `flask cron`; rename them")
        app.cli.add_command(cron_commands)
        teach_alembic()

    def run(self, name: str, slot: datetime | None = None, force: bool = False) -> Outcome:
        """Run a job here and now, for the newest slot or for *slot*, as a request would.

        :param slot: an aware datetime on the job's schedule.
        :param force: run although the slot ran, the job is paused or it is too late; never although
            it is running, nor where ``CRONLOCK_ENABLED`` is false. Uses up no slot.
        :raises RefusedRun: when the wish is wrong: unknown job, nested run, a slot off the grid.
        :raises Unavailable: when no run could be begun; try again later.
        """
        state = self._state()
        return run_job(this_app(), state, self.jobs.get(name), "manual", slot, force)

    def with_lock(
        self,
        name: LockName,
        work: Callable[[Session], T],
        timeout: Duration | None = None,
        wait: Duration | None = None,
    ) -> Ran[T] | Skipped:
        """Call ``work(session)`` in a transaction of its own that holds the lock *name*.

        The session is ``db.session`` inside *work*. What *work* raises is raised here, after the
        rollback. What it writes on connections of its own is under the lock too, but not in its
        transaction.

        :param name: a name, or a tuple such as ``("customer", 42)``. A job's name is its lock.
        :param timeout: how long *work* may take; default ``CRONLOCK_TIMEOUT``.
        :param wait: how long to wait for the lock; default: not at all.
        :raises RegistrationError: for a wrong duration, or work that comes later.
        :raises RefusedRun: when nothing was touched: ``NestedRun``, ``LockNameError``.
        :raises Unavailable: when the lock could not be asked for; try again later.
        :raises JobTimeout: when the time was up, so that nothing was kept.
        :raises LockLost: when the transaction was lost or aborted, so that nothing was kept.
        :raises ForeignObject: when the work used what the caller's session had loaded.
        :raises RunError: when the work was rolled back for another fault of the kind.
        """
        return work_exclusively(this_app(), self._state(), name, work, timeout, wait)

    def exclusive(
        self,
        name: LockName,
        timeout: Duration | None = None,
        wait: Duration | None = None,
    ) -> Callable[[Callable[P, T]], Callable[P, Ran[T] | Skipped]]:
        """Decorate a function so that each call runs under :meth:`with_lock`.

        :raises LockNameError: for a name that no lock can have.
        :raises RegistrationError: for a wrong duration, or a function whose work comes later.
        """
        lock_text("", name)
        for duration in (timeout, wait):
            if duration is not None:
                checked_timeout(duration)

        def decorate(function: Callable[P, T]) -> Callable[P, Ran[T] | Skipped]:
            refuse_deferred(function)

            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> Ran[T] | Skipped:
                return self.with_lock(name, lambda _: function(*args, **kwargs), timeout, wait)

            return call

        return decorate

    def start_clock(
        self, app: Flask, workers: int | None = None, grace: Duration = "25s"
    ) -> BackgroundClock | None:
        """Start the clock in a thread of this process, which serves *app*; ``flask cron clock``
        is the same as a process of its own.

        Any number of processes may have one. Nothing is started, and ``None`` returned, under
        ``app.testing`` and in the processes of ``flask`` commands other than ``run``. A forked
        child has none: under ``gunicorn --preload`` call this in ``post_worker_init``.

        :param workers: how many jobs may run at once, each on a connection of its own; default: as
            many as the pool has connections for, less one, but no more than 8.
        :param grace: how long runs may go on when the process ends; then they are rolled back.
        :raises ConfigError: when the app's pool has too few connections.
        """
        with app.app_context():
            state = self._state()
        return start_clock(app, state, workers, parse_duration(grace, "grace"))

    def _state(self) -> AppState:
        state = this_state()
        if state.jobs is not self.jobs:
            raise ConfigError("this app was set up with another CronLock; use that one")
        return state
