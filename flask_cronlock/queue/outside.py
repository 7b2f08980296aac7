"""Items whose effect is outside the database: an attempt is counted before it is made."""

from __future__ import annotations

from ..contexts import fresh_context
from ..limits import Deadline
from .desk import Desk
from .item import Item
from .records import BUSY, Record, State
from .surety import mind_commits
from .task import Delivery


def do_outside(desk: Desk, item: Item) -> Record | None:
    """Call one item's task, in no transaction; ``None`` if it has ended already.

    Nobody can tell whether a call that never came back has had its effect. At most once, it is then
    in doubt; at least once, it is made again, with the same key.
    """
    follows = desk.task.delivery is Delivery.AT_LEAST_ONCE
    record = desk.begin(item, follows)
    if record is None:
        return desk.abandon(item)
    if record is BUSY:
        return record
    db = desk.state.db
    try:
        with fresh_context(desk.app, db):
            session = db.session()
            mind_commits(session, db.engine)
            item.call(session, Deadline(desk.timeout), record.attempts)
            if db.session().in_transaction():
                db.session.commit()
    except BaseException as error:
        return desk.fail(item, record, error)
    fate = Record(State.DONE, record.attempts, False)
    desk.write(item, fate)
    return fate
