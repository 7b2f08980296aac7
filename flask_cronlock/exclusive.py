"""Work under a lock, without a slot: the function form of the lock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from flask import Flask
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from .contexts import own_context
from .durations import Duration, parse_duration
from .holders import end_if_overdue, find_holder
from .instance import with_pid
from .jobs import done
from .limits import LOCK_WAIT
from .locks import TRY, WAIT, LockName, lock_text
from .registration import checked_timeout, refuse_deferred
from .results import Ran, Reason, Skipped
from .session import closed_off, joined_session
from .sqlerrors import LOCK_NOT_AVAILABLE, sqlstate
from .state import AppState
from .transaction import GuardedTransaction

T = TypeVar("T")


def work_exclusively(
    app: Flask,
    state: AppState,
    name: LockName,
    work: Callable[[Session], T],
    timeout: Duration | None = None,
    wait: Duration | None = None,
) -> Ran[T] | Skipped:
    """Call *work* with a session, in a transaction of its own that holds the lock *name*.

    It takes the same steps as a run, less the slot and the claim; no table of ours is needed. What
    the work writes on connections of its own is under the lock too, and so is not refused.
    """
    refuse_deferred(work)
    config, db = state.config, state.db
    key = lock_text(config.namespace, name)
    limit = config.timeout if timeout is None else checked_timeout(timeout)
    waits = timedelta() if wait is None else parse_duration(wait, "wait")
    checked_timeout(limit + waits)
    outer = db.session() if db.session.registry.has() else None
    tx = GuardedTransaction(
        db.engine, limit + waits, with_pid(config.instance), lock_wait=waits or LOCK_WAIT
    )
    with own_context(app, db, key), tx:
        skipped = _try_and_wait(tx, key, limit) if waits else _try(tx, key)
        if skipped is not None:
            return skipped
        try:
            with closed_off(outer), joined_session(db, tx.connection, alone=False) as session:
                tx.guard()
                value = done(work, work(session))
            tx.check()
            tx.prove()
            tx.commit()
        except Exception as error:
            explained = tx.explain(error)
            if explained is error:
                raise
            raise explained from error
        return Ran(value, job=key, instance=tx.instance, duration=tx.deadline.elapsed)


def _try(tx: GuardedTransaction, key: str) -> Skipped | None:
    row = tx.execute(TRY, {"key": key, "lock_timeout": tx.lock_timeout}).one()
    if row.locked:
        return None
    holder = find_holder(tx, key)
    end_if_overdue(tx, key, holder)
    return Skipped(
        Reason.ALREADY_RUNNING,
        job=key,
        instance=tx.instance,
        held_by=holder.who if holder else None,
        held_since=holder.since if holder else None,
    )


def _try_and_wait(tx: GuardedTransaction, key: str, timeout: timedelta) -> Skipped | None:
    """Wait for the lock up to the transaction's ``lock_timeout``; the timeout counts from then.

    In vain, it names who held the lock when the wait began.
    """
    if (skipped := _try(tx, key)) is not None:
        try:
            tx.execute(WAIT, {"key": key})
        except DBAPIError as error:
            if sqlstate(error) != LOCK_NOT_AVAILABLE:
                raise
            return skipped
    tx.arm(timeout, tx.lock_timeout)
    return None
