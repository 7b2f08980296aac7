"""Items whose effect is in the database: each is recorded in the transaction of what it does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import DBAPIError

from ..contexts import own_context
from ..exceptions import OutcomeUnknown, TransactionEnded
from ..limits import LIMIT_WAIT
from ..session import joined_session
from ..sqlerrors import waited_for_row
from ..texts import error_text
from ..transaction import GuardedTransaction
from .desk import Desk
from .item import Item
from .records import BUSY, Record, State

logger = logging.getLogger("flask_cronlock")


def do_together(desk: Desk, items: Sequence[Item], stopping: Callable[[], bool]) -> list[Item]:
    """Do *items* in one transaction, while half of its time lasts; return those that were not.

    What is raised has undone all of them, but for those that a raw COMMIT has kept.
    """
    tx = desk.transaction()
    called: dict[str, Item] = {}
    try:
        _call_together(desk, tx, items, stopping, called)
    except BaseException as error:
        if tx.xid is not None and not isinstance(error, OutcomeUnknown):
            desk.give_back([item for item in items if item.key not in called], tx.xid)
            _tell_of_raw_commit(desk, tx.explain(error), next(reversed(called), ""))
        raise
    return [item for item in items if item.key not in called]


def _call_together(
    desk: Desk,
    tx: GuardedTransaction,
    items: Sequence[Item],
    stopping: Callable[[], bool],
    called: dict[str, Item],
) -> None:
    """Call what is claimed of *items*, each noted in *called* before that, and commit."""
    with own_context(desk.app, desk.state.db, desk.task.name), tx:
        try:
            mine = desk.records.claim_all(tx, items)
        except DBAPIError as error:
            if not waited_for_row(error):
                raise
            return
        tx.prove()
        tx.execute(LIMIT_WAIT, {"lock_timeout": tx.lock_timeout})
        tx.guard()
        left = {item.key: item for item in items if item.key in mine}
        with joined_session(desk.state.db, tx.connection) as session:
            while left:
                if called and (stopping() or tx.deadline.remaining < desk.timeout / 2):
                    break
                item = left.pop(next(iter(left)))
                called[item.key] = item
                item.call(session, tx.deadline)
                # Each in a savepoint of its own: a later one's rollback() is its own business.
                session.commit()
                session.expunge_all()
        if left:
            desk.records.give_back(tx, left.values(), tx.xid)
        if called:
            _commit(desk, tx, next(iter(called.values())))


def _tell_of_raw_commit(desk: Desk, found: BaseException, item: str) -> None:
    """Log it where the *item* that was called last has ended the transaction of all."""
    if isinstance(found, TransactionEnded):
        task, told = desk.task.name, error_text(found, desk.state.config.secrets)
        extra = {"action": "item_ended_transaction", "task": task, "item": item}
        logger.error("Task %s, item %s: %s", task, item, told, extra=extra)


def do_alone(desk: Desk, item: Item, counted: bool) -> Record | None:
    """Do one item in a transaction of its own; ``None`` if it has ended already."""
    with own_context(desk.app, desk.state.db, desk.task.name), desk.transaction() as tx:
        try:
            record = desk.records.claim(tx, item, counted, desk.queue_row)
        except DBAPIError as error:
            if not waited_for_row(error):
                raise
            return BUSY
        if record is None:
            return None
        tx.execute(LIMIT_WAIT, {"lock_timeout": tx.lock_timeout})
        tx.guard()
        try:
            with joined_session(desk.state.db, tx.connection) as session:
                item.call(session, tx.deadline, record.attempts)
            _commit(desk, tx, item)
            return record
        except BaseException as error:
            failure = tx.explain(error)
    if isinstance(failure, OutcomeUnknown):
        return BUSY
    return desk.fail(item, record, failure)


def _commit(desk: Desk, tx: GuardedTransaction, item: Item) -> None:
    def is_kept(other: GuardedTransaction) -> bool:
        found = desk.records.look(other, [item.key], desk.queue_row).get(item.key)
        return found is not None and found.state is State.DONE

    tx.check()
    tx.prove()
    tx.commit(is_kept)
