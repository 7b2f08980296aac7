"""What an error in mid-run means for the run."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

CURSORS = "integration/test_raw_cursors.py"
RAW = "test_what_a_raw_cursor_of_the_runs_own_connection_says_is_a_lost_lock_too"

MECHANISMS = [
    Mechanism(
        name="given-away-is-told",
        keeps="A job that gave its connection away is told what to use instead.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="sqlerrors.py",
        source="if left.given_away and isinstance(error, SQLAlchemyError):",
        instead="if False:",
        test_file="integration/test_given_away_connections.py",
        test="test_the_job_is_told_what_to_do_and_the_slot_is_run_again",
    ),
    Mechanism(
        name="raw-cursor-is-the-runs-own",
        keeps="What a raw cursor of the run's connection says of a lost transaction is understood.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="transaction.py",
        source='event.listen(self.connection, "rollback_savepoint", note_raised)',
        instead="pass",
        test_file=CURSORS,
        test=f"{RAW}[in_the_sessions_savepoint]",
    ),
    Mechanism(
        name="raw-cursor-outside-savepoints",
        keeps="So is what it says where the session has no savepoint any more.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="sqlerrors.py",
        source=" or not left.whole",
        instead="",
        test_file=CURSORS,
        test=f"{RAW}[after_the_sessions_commit]",
    ),
    Mechanism(
        name="undone-abort-is-over",
        keeps="An abort that the job has undone makes nobody else's error the run's.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="sqlerrors.py",
        source=" and not lent.look().whole",
        instead="",
        test_file=CURSORS,
        test="test_an_abort_that_the_job_has_undone_makes_no_others_error_the_runs",
    ),
    Mechanism(
        name="broken-and-used-again",
        keeps="A connection that broke below a whole session, and was used again, is a lost lock.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="sqlerrors.py",
        source=" and not isinstance(error, PendingRollbackError)",
        instead="",
        test_file=CURSORS,
        test="test_a_connection_that_broke_and_is_used_again_is_a_lost_lock",
    ),
]
