"""Items whose effect is in the database: none is done twice, and none is lost."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

BATCHES = "integration/test_items_in_batches.py"
KILLED = "integration/test_items_killed.py"
LOST = "integration/test_items_lost_commit.py"
MANY = "integration/test_items_of_many_workers.py"
ONCE = "integration/test_items_once.py"
RAW = "test_a_raw_commit_keeps_the_record_with_the_effect"
WAITED = "test_one_that_waited_for_another_worker_does_nothing_again"

MECHANISMS = [
    Mechanism(
        name="ended-items-are-not-begun",
        keeps="What ended while a worker waited for it is not done again.",
        invariant=Invariant.ONCE,
        file="queue/records.py",
        source="where=and_(table.c.state.in_(OPEN), left, ",
        instead="where=and_(left, ",
        test_file=MANY,
        test=f"{WAITED}[1]",
    ),
    Mechanism(
        name="batch-is-claimed",
        keeps="Of a batch a worker does only what no other one has done or has in hand.",
        invariant=Invariant.ONCE,
        file="queue/within.py",
        source="for item in items if item.key in mine}",
        instead="for item in items}",
        test_file=MANY,
        test=f"{WAITED}[3]",
    ),
    Mechanism(
        name="batch-guards-its-transaction",
        keeps="No item of a batch ends the transaction of all through SQLAlchemy.",
        invariant=Invariant.ONCE,
        file="queue/within.py",
        source="        tx.guard()\n        left",
        instead="        left",
        test_file=BATCHES,
        test="test_none_ends_the_transaction_of_all_by_sqlalchemy",
    ),
    Mechanism(
        name="item-guards-its-transaction",
        keeps="An item does not end the transaction of its record through SQLAlchemy.",
        invariant=Invariant.ONCE,
        file="queue/within.py",
        source="        tx.guard()\n        try:",
        instead="        try:",
        test_file=ONCE,
        test="test_a_failure_keeps_neither_and_it_is_tried_again[end_the_transaction_by_sqlalchemy]",
    ),
    Mechanism(
        name="batch-waits-for-locks-as-the-role-does",
        keeps="The limit of the claim's wait for a lock does not hold for a batch's items.",
        invariant=Invariant.CLEAN_BACKEND,
        file="queue/within.py",
        source=(
            '        tx.execute(LIMIT_WAIT, {"lock_timeout": tx.lock_timeout})\n'
            "        tx.guard()\n        left"
        ),
        instead="        tx.guard()\n        left",
        test_file=BATCHES,
        test="test_they_wait_for_locks_as_long_as_the_role_does",
    ),
    Mechanism(
        name="item-waits-for-locks-as-the-role-does",
        keeps="The limit of the claim's wait for a lock does not hold for the item.",
        invariant=Invariant.CLEAN_BACKEND,
        file="queue/within.py",
        source=(
            '        tx.execute(LIMIT_WAIT, {"lock_timeout": tx.lock_timeout})\n'
            "        tx.guard()\n        try:"
        ),
        instead="        tx.guard()\n        try:",
        test_file=ONCE,
        test="test_it_waits_for_locks_as_long_as_the_role_does",
    ),
    Mechanism(
        name="item-of-a-batch-has-a-savepoint",
        keeps="An item's own rollback undoes no other item of its batch.",
        invariant=Invariant.ONCE,
        file="queue/within.py",
        source="                session.commit()\n                session.expunge_all()\n",
        instead="                session.expunge_all()\n",
        test_file=BATCHES,
        test="test_its_own_rollback_undoes_the_item_alone",
    ),
    Mechanism(
        name="item-of-a-batch-has-objects-of-its-own",
        keeps="No object of one item is in the session of the next.",
        invariant=Invariant.NOTHING_LEFT,
        file="queue/within.py",
        source="                session.expunge_all()\n",
        instead="",
        test_file=BATCHES,
        test="test_objects_of_one_item_are_not_flushed_with_the_next",
    ),
    Mechanism(
        name="batch-ends-in-time",
        keeps="No item of a batch is begun in the second half of the transaction's time.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source=" or tx.deadline.remaining < desk.timeout / 2",
        instead="",
        test_file=BATCHES,
        test="test_many_that_take_longer_than_one_may_are_done_in_several_transactions",
    ),
    Mechanism(
        name="batch-stops-with-its-worker",
        keeps="A worker that is to end begins no further item of a batch.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source="if called and (stopping() or",
        instead="if called and (False or",
        test_file=BATCHES,
        test="test_a_worker_that_is_to_end_puts_back_what_it_has_not_begun",
    ),
    Mechanism(
        name="what-was-not-called-is-given-back",
        keeps="No item of a batch is recorded as done that was not called.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source="            desk.records.give_back(tx, left.values(), tx.xid)",
        instead="            pass",
        test_file=BATCHES,
        test="test_a_worker_that_is_to_end_puts_back_what_it_has_not_begun",
    ),
    Mechanism(
        name="raw-commit-loses-no-other-item",
        keeps="A raw COMMIT in one item does not record those after it as done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source=(
            "            desk.give_back("
            "[item for item in items if item.key not in called], tx.xid)\n"
        ),
        instead="",
        test_file=BATCHES,
        test="test_a_raw_commit_of_one_loses_none_and_repeats_none[COMMIT]",
    ),
    Mechanism(
        name="raw-commit-is-told",
        keeps="A raw COMMIT in an item of a batch is logged with the item's key.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source="    if isinstance(found, TransactionEnded):",
        instead="    if False:",
        test_file=BATCHES,
        test="test_a_raw_commit_of_one_loses_none_and_repeats_none[COMMIT]",
    ),
    Mechanism(
        name="only-own-claims-are-given-back",
        keeps="No worker takes back what another one has recorded.",
        invariant=Invariant.ONCE,
        file="queue/records.py",
        source=".where(mine, WRITTEN_BY.bindparams(xid=xid))",
        instead=".where(mine)",
        test_file=BATCHES,
        test="test_claims_of_another_transaction_are_not_given_back",
    ),
    Mechanism(
        name="item-proves-its-transaction",
        keeps="An item whose transaction was ended under it is not called done without a word.",
        invariant=Invariant.NOT_SILENT,
        file="queue/within.py",
        source="    tx.check()\n    tx.prove()\n",
        instead="    tx.check()\n",
        test_file=ONCE,
        test=f"{RAW}[COMMIT; BEGIN; SAVEPOINT sa_savepoint_1]",
    ),
    Mechanism(
        name="done-stays-done",
        keeps="A failure after a raw COMMIT does not open an item again whose effect was kept.",
        invariant=Invariant.ONCE,
        file="queue/records.py",
        source="if settles else OPEN",
        instead="if settles else list(State)",
        test_file=ONCE,
        test=f"{RAW}[COMMIT]",
    ),
    Mechanism(
        name="batch-that-fails-is-done-one-by-one",
        keeps="An item that fails keeps no other item of its row from being done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/work.py",
        source="        raise\n    except (Exception, SystemExit):",
        instead="        raise\n    except ZeroDivisionError:",
        test_file=BATCHES,
        test="test_one_that_fails_leaves_the_others_done[0-30]",
    ),
    Mechanism(
        name="work-stops-with-its-worker",
        keeps="A worker that is to end puts back what it has not begun.",
        invariant=Invariant.NOT_SILENT,
        file="queue/work.py",
        source="        if stopping():\n",
        instead="        if False:\n",
        test_file=BATCHES,
        test="test_a_worker_that_is_to_end_at_once_begins_none",
    ),
    Mechanism(
        name="unavailable-puts-back",
        keeps="A row that is in hand while the database is away is put back.",
        invariant=Invariant.NOT_SILENT,
        file="queue/work.py",
        source="        except (Unavailable, OutcomeUnknown) as error:\n            words",
        instead="        except ZeroDivisionError as error:\n            words",
        test_file=LOST,
        test="test_a_database_that_is_away_puts_the_row_back",
    ),
    Mechanism(
        name="redelivered-items-are-counted-first",
        keeps="An item that kills workers is given up after its attempts.",
        invariant=Invariant.NOT_SILENT,
        file="queue/work.py",
        source="    if not was_delivered:\n",
        instead="    if True:\n",
        test_file=KILLED,
        test="test_it_is_the_death_of_as_many_workers_as_it_has_attempts",
    ),
]
