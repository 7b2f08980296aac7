"""The guarded transaction: one connection and one transaction, proven whole until its commit.

A transaction-level advisory lock that was taken outside any savepoint lives exactly as long as its
transaction: COMMIT, ROLLBACK, an abort or the end of the backend frees it, and nothing else does.
Whoever proves that the transaction is still the same one has proved the lock. The job writes in
savepoints of it. The server ends it when its time is up, also where this process is frozen or gone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, CursorResult, Engine, Executable, event

from .borrowed import Borrowed, note_commit
from .exceptions import JobTimeout, LockLost, NotPrimary, OutcomeUnknown, TransactionEnded
from .injected import clock_of
from .limits import ARM, LOCK_WAIT, NAME_ROOM, SETTLE_WAIT, Deadline, hold_deadline, milliseconds
from .settling import Witness, status_of
from .sqlerrors import before_work, broke_connection, meaning, note_raised
from .statements import PROOF


class GuardedTransaction:
    """A READ COMMITTED transaction on one connection of *engine*, ended by us alone.

    It begins on entry; without a :meth:`commit` it is rolled back on exit.

    :param timeout: how long it may last; kept by the server's own limits (see ``limits``).
    :param instance: who asks, with pid; shown as ``application_name`` while it lasts.
    :param lock_wait: how long a statement may wait for a lock, until the lock or claim is had.
    """

    clock: datetime
    """The database's clock at the first statement; no instance's clock decides anything."""

    def __init__(
        self, engine: Engine, timeout: timedelta, instance: str, lock_wait: timedelta = LOCK_WAIT
    ) -> None:
        self.engine, self.instance = engine, instance
        self.timeout, self.lock_wait, self.deadline = timeout, lock_wait, Deadline(timeout)
        self.xid: str | None = None
        """Its id once it has claimed, or was proved: what the server knows a lost COMMIT by."""
        self.committed = self.guarding = self.begun = False
        self._borrowed: Borrowed | None = None
        self._process = os.getpid()
        self.stamp = clock_of(engine)
        """Returns the time by a test's clock, where there was one when this began."""

    def __enter__(self) -> GuardedTransaction:
        with ExitStack() as unless_begun:
            unless_begun.push(self)
            try:
                self._begin()
            except Exception as error:
                if self._borrowed is None or not broke_connection(error):
                    raise
                self._release()
                self._begin()
            unless_begun.pop_all()
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._release()
        if error is None or self.begun or self.committed:
            return
        if (unavailable := before_work(error, self.deadline.passed)) is not None:
            raise unavailable from error

    def _begin(self) -> None:
        # 2
        self._borrowed = Borrowed(self.engine, self._refuse_end)
        self.connection, self.driver = self._borrowed.connection, self._borrowed.driver
        self.connection.begin()
        # 3
        self.arm(self.timeout, milliseconds(self.lock_wait))

    def guard(self) -> None:
        """Hand the connection to the job, and keep it from ending the transaction.

        The session's own commit ends a savepoint. A raw COMMIT cannot be refused: it frees the lock
        and keeps what was written; the proof in ``Ledger.finish`` finds it: Failed, with LockLost.
        """
        event.listen(self.connection, "commit", self._refuse_end)
        event.listen(self.connection, "rollback", self._refuse_end)
        event.listen(self.connection, "before_cursor_execute", self._before_statement)
        event.listen(self.connection, "rollback_savepoint", note_raised)
        self.guarding = self.begun = True

    def arm(self, timeout: timedelta, lock_timeout: str) -> None:
        """Set the limits, outside any savepoint, whose rollback would undo them."""
        self.deadline = Deadline(timeout)
        limits = {"timeout": milliseconds(timeout), "lock_timeout": lock_timeout}
        row = self.execute(ARM, {**limits, "instance": self.instance[-NAME_ROOM:]}).one()
        if row.read_only:
            raise NotPrimary
        self.clock = (self.stamp() or row.clock).astimezone(UTC)
        self.began, self.pid, self.server = row.began, row.pid, row.server
        self.lock_timeout, self._server_limits_whole = row.lock_timeout, row.whole

    @property
    def claimed(self) -> bool:
        """Tell whether this process, not a forked child, has a claim in here that may be undone."""
        return self.xid is not None and not self.committed and os.getpid() == self._process

    def execute(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> CursorResult[Any]:
        """Execute *statement* on the transaction's connection, outside the job's session."""
        return self.connection.execute(statement, values)

    def _refuse_end(self, *_: Connection) -> None:
        """Keep the job from ending the transaction, and with it the lock, through SQLAlchemy."""
        if self.guarding:
            raise TransactionEnded

    def _before_statement(self, *_: object) -> None:
        """Refuse a forked child; keep the deadline where the server limits no whole transaction."""
        if os.getpid() != self._process:
            raise LockLost("a forked child of the job used the run's connection")
        if self.guarding and not self._server_limits_whole:
            hold_deadline(self.driver, self.deadline)

    def check(self) -> None:
        """Raise unless the transaction can still commit, and in time."""
        # 8
        if self.deadline.passed:
            raise JobTimeout
        if self.driver.info.transaction_status != TransactionStatus.INTRANS:
            raise LockLost

    def prove(self) -> None:
        """Raise unless this is still the transaction that began here, and note its id."""
        row = self.execute(PROOF).one()
        if (row.pid, row.began) != (self.pid, self.began):
            raise TransactionEnded
        self.xid = row.xid

    def commit(self, witness: Witness | None = None) -> None:
        """Commit, and raise unless the server said, now or when asked again, that it was one.

        An error that leaves the connection idle is the server's answer: nothing was kept.

        :param witness: finds what was kept, where something can be found, when asked again.
        """
        # 9
        self.guarding = False
        try:
            answer = self.driver.execute("COMMIT", prepare=False).statusmessage
        except BaseException as error:
            idle = self.driver.info.transaction_status == TransactionStatus.IDLE
            if isinstance(error, psycopg.Error) and idle:
                raise
            self._release(broken=True)
            self._settle(error, witness)
            self.committed = True
            if not isinstance(error, Exception):
                raise
            return
        if answer != "COMMIT":
            raise LockLost
        self.committed = True
        note_commit(self.connection)

    def _settle(self, error: BaseException, witness: Witness | None) -> None:
        """Ask on a new connection what became of a COMMIT whose answer was lost.

        Committed is a success; aborted and unknown are failures, and the slot's next hit finds the
        claim, or does not. One without an id wrote nothing, or nothing that must be known of.
        """
        if self.xid is None:
            return
        try:
            with GuardedTransaction(self.engine, 2 * SETTLE_WAIT, self.instance) as other:
                found = status_of(self.xid, self.server, other, witness)
        except (Exception, SystemExit) as second:
            raise OutcomeUnknown from second
        if found == "aborted":
            raise self.explain(error) from error
        if found != "committed":
            raise OutcomeUnknown from error

    def explain(self, error: BaseException) -> BaseException:
        """Return what *error* means for the run: its time was up, its lock is lost, or itself."""
        return meaning(error, self.connection, self.deadline.passed)

    def _release(self, broken: bool = False) -> None:
        self.guarding = False
        borrowed, self._borrowed = self._borrowed, None
        if borrowed is not None:
            borrowed.give_back(broken)
