"""Everything Flask-CronLock raises, or puts into a ``Failed`` outcome::

    CronLockError
    ├── ConfigError               a configuration value cannot be used
    │   └── QueueMissing          the extra that it needs is not installed
    ├── RegistrationError         a job or task cannot be registered
    │   ├── ScheduleError         its schedule or zone is wrong
    │   └── DurationError         one of its durations is wrong
    ├── RefusedRun                the run was not begun, and nothing was touched
    │   ├── UnknownJob
    │   ├── NestedRun
    │   ├── DirtySession
    │   ├── SlotError
    │   └── LockNameError
    ├── DeferError                nothing was deferred
    │   ├── UnknownTask
    │   ├── ArgumentError
    │   └── TransactionAborted
    ├── OnceError                 it was not found out whether a key is the first
    ├── ItemError                 no item was changed
    ├── Unavailable               no run is possible now; try again later
    │   ├── DatabaseUnreachable
    │   ├── NoFreeConnection
    │   ├── NotInTime
    │   ├── Interrupted
    │   ├── TransactionLost
    │   ├── TablesLocked
    │   ├── NotPrimary
    │   ├── StatementPooling
    │   ├── TablesMissing
    │   ├── RightsMissing
    │   └── SecretMissing
    └── RunError                  the run began and was rolled back
        ├── JobTimeout
        ├── LockLost
        │   ├── TransactionEnded
        │   └── SessionReplaced
        ├── ForeignObject
        ├── ForeignTransaction
        ├── ForeignEngine
        ├── SplitSession
        ├── IsolationFixed
        ├── BrokenSlot
        └── OutcomeUnknown

Each class's docstring is its message; text given to it is added after a colon. ``NotDone`` stands
apart: it is for tasks to raise.
"""

from __future__ import annotations

import inspect


class NotDone(Exception):
    """Raised by a task that knows that nothing was done outside, as when a connection was refused:
    the item can be tried again, whatever its delivery is."""


class CronLockError(Exception):
    """Flask-CronLock could not go on."""

    def __init__(self, detail: str | None = None) -> None:
        text = " ".join(inspect.getdoc(type(self)).split())  # type: ignore[union-attr]
        super().__init__(f"{text.removesuffix('.')}: {detail}" if detail else text)


class ConfigError(CronLockError):
    """Correct the configuration of Flask-CronLock."""


class QueueMissing(ConfigError):
    """Tasks need the queue's package: pip install 'Flask-CronLock[queue]'."""


class RegistrationError(CronLockError):
    """Correct the registration of the job."""


class ScheduleError(RegistrationError):
    """The schedule cannot be used."""


class DurationError(RegistrationError):
    """Give a positive duration: a timedelta, seconds, or text such as "90s", "15m", "6h", "7d"."""


class RefusedRun(CronLockError):
    """The run was refused before anything was touched."""


class UnknownJob(RefusedRun):
    """`flask cron list` shows the jobs; there is none of this name."""


class NestedRun(RefusedRun):
    """A run or lock cannot be taken inside another: call the work as a plain function, or after
    the outer run has ended."""


class DirtySession(RefusedRun):
    """The caller's db.session holds writes that are not committed: commit them or roll them back
    before the run, which has a transaction of its own."""


class SlotError(RefusedRun):
    """The named slot is not one that the job can run now; `flask cron list` shows its slots."""


class LockNameError(RefusedRun):
    """Name a lock by lower-case letters, digits, "-" and "_" (at most 63), or by a tuple that
    starts with such a name and goes on with str, int or UUID parts."""


class DeferError(CronLockError):
    """Nothing was deferred."""


class UnknownTask(DeferError):
    """No task is registered under this name: decorate the function with @cron.task, in a module
    that is imported by the web processes and the workers."""


class ArgumentError(DeferError):
    """A task's arguments are kept as JSON: give text, numbers, true, false, null, lists, and dicts
    with text keys; a datetime by isoformat(), a model by its id."""


class TransactionAborted(DeferError):
    """An SQL error that was swallowed has aborted the transaction, so its COMMIT would keep nothing
    of it, and say nothing: let SQL errors end the request, or keep each inside
    db.session.begin_nested()."""


class OnceError(CronLockError):
    """Whether the key is the first was not asked, and it was not kept."""


class ItemError(CronLockError):
    """No item was changed; `flask cron items` lists the keys."""


class Unavailable(CronLockError):
    """No run is possible now; try again later."""


class DatabaseUnreachable(Unavailable):
    """The database cannot be reached or is not ready; try again when it is."""


class NoFreeConnection(Unavailable):
    """No connection came free in the app's pool, or in the pooler before the database: a run needs
    one, so raise pool_size or pool_timeout in SQLALCHEMY_ENGINE_OPTIONS (PgBouncer's are
    default_pool_size and query_wait_timeout), or end the caller's open transaction first."""


class NotInTime(Unavailable):
    """The time was up before the run had its lock and claim, so nothing was begun: the timeout is
    too short for a database that is as slow as this one is now; raise it, or see what holds the
    database up."""


class Interrupted(Unavailable):
    """A statement was ended before the run had its lock and claim, so nothing was begun. Where no
    operator did that, a limit that the role, the database or the pooler sets is too short for the
    first steps or the wait: raise it (statement_timeout, transaction_timeout,
    idle_in_transaction_session_timeout; in PgBouncer query_timeout)."""


class TransactionLost(Unavailable):
    """A short transaction of Flask-CronLock's own, which held no lock, was lost with its
    connection, so nothing of it was kept: the log of the database or pooler says who ended it."""


class TablesLocked(Unavailable):
    """The tables of Flask-CronLock are locked, by a migration for example, so nothing was begun:
    try again when that has ended."""


class NotPrimary(Unavailable):
    """This server takes no writes (a standby, or a read-only session), so a lock on it excludes
    nobody: point SQLALCHEMY_DATABASE_URI at the primary."""


class StatementPooling(Unavailable):
    """The pooler gives each statement a backend of its own, so there is no transaction, and no
    lock: set pool_mode = transaction in PgBouncer, for this database or user at least."""


class TablesMissing(Unavailable):
    """The tables of Flask-CronLock are missing or of another version: run `flask cron init-db`,
    or the app's migrations."""


class RightsMissing(Unavailable):
    """The app's role lacks a right: GRANT SELECT, INSERT, UPDATE on the tables of Flask-CronLock
    to it, DELETE to that of workers, and what the queue needs as docs/configuration.md lists it;
    or EXECUTE where the database names a function, which a lock alone needs too."""


class SecretMissing(Unavailable):
    """No secret is configured, so no request can be let in: set CRONLOCK_SECRET or CRON_SECRET to
    the output of `flask cron secret`."""


class RunError(CronLockError):
    """The run was rolled back."""


class JobTimeout(RunError):
    """The job's time was up and the run was rolled back: raise its timeout, or do less in one
    run."""


class LockLost(RunError):
    """The transaction that held the lock and the claim is gone or aborted, so nothing was kept.
    An SQL error that the job swallowed does this: let SQL errors end the job, or keep each inside
    db.session.begin_nested(). So do a killed backend and a limit that is shorter than the job,
    such as PgBouncer's idle_transaction_timeout or query_timeout: raise it above the job's
    timeout."""


class TransactionEnded(LockLost):
    """The job ended the run's own transaction, or tried to, or closed its connection: use
    db.session.commit(), db.session.rollback() and db.session.close(), which keep the lock. What a
    raw COMMIT reached was kept, and the slot is broken then."""


class SessionReplaced(LockLost):
    """db.session is no longer the run's own at its end: take db.session.remove() out of the
    job; close() and rollback() are allowed."""


class ForeignObject(RunError):
    """An object loaded outside was used inside the lock, on another connection than the lock's:
    load it again through the session that is passed in."""


class ForeignTransaction(RunError):
    """The job wrote in an app context or on a connection of its own, apart from the run: write
    through db.session in the context that the job is called in (a library that takes a connection
    gets run.session.connection()); for what is to be kept whatever becomes of the run, use or hand
    over db.engine.execution_options(postgresql_readonly=False)."""


class ForeignEngine(RunError):
    """The app's session led a statement to a variant of its engine, and so to another connection
    than the lock's: return db.engine from get_bind(), and give options to the statement."""


class SplitSession(RunError):
    """The app's session sends reads to another engine than writes, where neither the lock nor what
    the run wrote is seen: return db.engine from get_bind() where "cronlock" is in self.info, and
    name another engine in a statement's bind_arguments."""


class IsolationFixed(RunError):
    """A run is READ COMMITTED, whatever its engine is: take isolation_level out of the job, and
    lock the rows that must not change by with_for_update()."""


class BrokenSlot(RunError):
    """A run of this slot sent a raw COMMIT and did not finish, so part of it may have been kept:
    see to what it did, then run the slot by hand with --force."""


class OutcomeUnknown(RunError):
    """The connection broke in COMMIT and the server did not say what became of it; the next hit
    for the slot settles it."""
