"""What is said where nothing could be begun."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

LOCK_ALONE = "integration/test_with_lock_unavailable.py"

MECHANISMS = [
    Mechanism(
        name="statement-pooling-refused",
        keeps="A pooler that has no transactions is named, with the cure.",
        invariant=Invariant.NOT_SILENT,
        step=3,
        file="sqlerrors.py",
        source="NO_TRANSACTIONS: StatementPooling, ",
        instead="",
        test_file="integration/test_statement_pooling.py",
        test="test_a_run_and_a_lock_are_refused_with_the_cure_and_nothing_runs",
    ),
    Mechanism(
        name="pooler-without-a-backend",
        keeps="A pooler that has no backend free is named, with the cure.",
        invariant=Invariant.NOT_SILENT,
        step=3,
        file="sqlerrors.py",
        source="NO_BACKEND: NoFreeConnection, ",
        instead="",
        test_file=LOCK_ALONE,
        test="test_a_pooler_without_a_free_backend_is_named",
    ),
    Mechanism(
        name="work-that-could-not-begin",
        keeps="A lock that could not be asked for is told as one, and not as an error of the work.",
        invariant=Invariant.NOT_SILENT,
        step=3,
        file="transaction.py",
        source="            raise unavailable from error",
        instead="            pass",
        test_file=LOCK_ALONE,
        test="test_a_role_that_may_not_lock_is_told_what_to_grant",
    ),
    Mechanism(
        name="work-that-had-begun",
        keeps="What the work itself meets is not told as if it had not begun.",
        invariant=Invariant.NOT_SILENT,
        step=7,
        file="transaction.py",
        source="if error is None or self.begun or self.committed:",
        instead="if error is None or self.committed:",
        test_file=LOCK_ALONE,
        test="test_what_the_work_itself_meets_is_no_want_of_ours",
    ),
    Mechanism(
        name="record-is-proved",
        keeps="A failed attempt whose record was lost with its COMMIT is not taken for recorded.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="reports.py",
        source="                tx.prove()\n",
        instead="",
        test_file="integration/test_lost_record.py",
        test="test_an_attempt_that_was_not_kept_is_not_taken_for_recorded",
    ),
    Mechanism(
        name="locked-table-is-no-claim",
        keeps="A table that a migration has locked is named, and not taken for a run that goes on.",
        invariant=Invariant.NOT_SILENT,
        step=6,
        file="sqlerrors.py",
        source="return found.diag.context is not None",
        instead="return True",
        test_file="integration/test_http_unavailable.py",
        test="test_tables_that_a_migration_has_locked_are_unavailable[index]",
    ),
]
