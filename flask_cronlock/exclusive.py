"""Work under a lock, without a slot: the function form of the lock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from .config import Config
from .exceptions import LockLost
from .instance import with_pid
from .jobs import finished, refuse_deferred
from .limits import LOCK_WAIT
from .locks import PROOF, RESET_LOCK_TIMEOUT, TRY, WAIT, LockName, find_holder, lock_text
from .reports import end_if_overdue
from .results import Ran, Reason, Skipped
from .runner import own_context
from .session import closed_off, joined_session
from .sqlerrors import LOCK_NOT_AVAILABLE, sqlstate
from .transaction import GuardedTransaction

T = TypeVar("T")


def work_exclusively(
    app: Flask,
    db: SQLAlchemy,
    config: Config,
    name: LockName,
    work: Callable[[Session], T],
    timeout: timedelta,
    wait: timedelta | None,
) -> Ran[T] | Skipped:
    """Call *work* with a session, in a transaction of its own that holds the lock *name*.

    It takes the same steps as a run, less the slot and the claim; no table of ours is needed.
    """
    refuse_deferred(work)
    key = lock_text(config.namespace, name)
    outer = db.session() if db.session.registry.has() else None
    instance = with_pid(config.instance)
    tx = GuardedTransaction(
        db.engine, timeout + (wait or timedelta()), instance, lock_wait=wait or LOCK_WAIT
    )
    with own_context(app, key), tx:
        skipped = _try_and_wait(tx, key, timeout) if wait else _try(tx, key)
        if skipped is not None:
            return skipped
        try:
            with closed_off(outer), joined_session(db, tx.connection) as session:
                tx.guard()
                value = finished(work(session))
            tx.check()
            _prove(tx)
            tx.commit()
        except Exception as error:
            explained = tx.explain(error)
            if explained is error:
                raise
            raise explained from error
        return Ran(value, job=key, instance=instance, duration=tx.deadline.elapsed)


def _try(tx: GuardedTransaction, key: str) -> Skipped | None:
    row = tx.execute(TRY, {"key": key, "lock_timeout": tx.lock_timeout}).one()
    if row.locked:
        return None
    holder = find_holder(tx, key)
    end_if_overdue(tx, key, key, holder)
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
    before = tx.lock_timeout
    if (skipped := _try(tx, key)) is not None:
        try:
            tx.execute(WAIT, {"key": key})
        except DBAPIError as error:
            if sqlstate(error) != LOCK_NOT_AVAILABLE:
                raise
            return skipped
    tx.arm(timeout)
    tx.execute(RESET_LOCK_TIMEOUT, {"lock_timeout": before})
    return None


def _prove(tx: GuardedTransaction) -> None:
    """Raise unless this is still the transaction that took the lock."""
    row = tx.execute(PROOF).one()
    if (row.pid, row.began) != (tx.pid, tx.began):
        raise LockLost
    tx.xid = row.xid
