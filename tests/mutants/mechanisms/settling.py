"""A COMMIT whose answer was lost, and what was kept of it."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

LOST_COMMIT = "integration/test_lost_commit.py"
REUSED = "integration/test_reused_ids.py"
CRASHED = "proofs/test_crashed_commits.py"
CRASHED_LOCK = "test_work_under_a_lock_that_was_not_kept_is_not_told_that_it_was"
PROOF = "integration/test_proof.py"

MECHANISMS = [
    Mechanism(
        name="lost-commit-is-asked-for",
        keeps="A COMMIT whose answer was lost is not taken for done unless it was.",
        invariant=Invariant.ONCE,
        step=9,
        file="transaction.py",
        source="            self._settle(error, witness)\n",
        instead="",
        test_file=LOST_COMMIT,
        test="test_a_run_whose_commit_never_arrived_failed_and_can_run_again",
    ),
    Mechanism(
        name="lost-commit-may-be-one",
        keeps="A COMMIT whose answer was lost is not taken for undone where it was done.",
        invariant=Invariant.NOT_SILENT,
        step=9,
        file="transaction.py",
        source="found = status_of(self.xid, self.server, other, witness)",
        instead='found = "aborted"',
        test_file=LOST_COMMIT,
        test="test_a_run_whose_commit_was_done_but_not_answered_ran",
    ),
    Mechanism(
        name="lost-runs-own-row",
        keeps="A lost run whose id a crash gave to somebody else is not taken for done.",
        invariant=Invariant.ONCE,
        step=9,
        file="runner.py",
        source="tx.commit(partial(state.ledger.is_kept, run))",
        instead="tx.commit()",
        test_file=REUSED,
        test="test_a_run_that_was_not_kept_has_failed_and_can_run_again",
    ),
    Mechanism(
        name="witness-is-heard",
        keeps="What is not there was not kept, whatever became of the id.",
        invariant=Invariant.ONCE,
        step=9,
        file="settling.py",
        source='return found if witness(other) else "aborted"',
        instead="return found",
        test_file=REUSED,
        test="test_a_run_that_was_not_kept_has_failed_and_can_run_again",
    ),
    Mechanism(
        name="ids-of-one-server",
        keeps="What another server, or one that crashed, says of an id is not believed.",
        invariant=Invariant.NOT_SILENT,
        step=9,
        file="settling.py",
        source="return found if other.server == server else None",
        instead="return found",
        test_file=REUSED,
        test="test_work_under_a_lock_was_kept_only_if_the_same_server_says_so",
    ),
    Mechanism(
        name="crash-of-a-backend-is-seen",
        keeps="A server that crashed is another one, also where its first process stayed.",
        invariant=Invariant.NOT_SILENT,
        step=9,
        file="limits.py",
        source="pg_stat_get_bgwriter_stat_reset_time()",
        instead="0",
        test_file=CRASHED,
        test=f"{CRASHED_LOCK}[kill_a_backend]",
    ),
    Mechanism(
        name="exit-while-settling",
        keeps="A worker that is told to exit while it asks does not call a run failed.",
        invariant=Invariant.NOT_SILENT,
        step=9,
        file="transaction.py",
        source="except (Exception, SystemExit) as second:",
        instead="except Exception as second:",
        test_file=LOST_COMMIT,
        test="test_a_worker_that_is_told_to_exit_while_it_asks_does_not_know_the_outcome",
    ),
    Mechanism(
        name="in-progress-is-no-success",
        keeps="A transaction that the server still calls in progress is not taken for done.",
        invariant=Invariant.ONCE,
        step=9,
        file="transaction.py",
        source='if found != "committed":',
        instead="if False:",
        test_file=PROOF,
        test="test_a_commit_of_which_the_server_does_not_know_the_end_is_unknown",
    ),
    Mechanism(
        name="lost-commits-connection-dropped",
        keeps="A connection whose COMMIT was broken off goes back to no pool.",
        invariant=Invariant.CLEAN_BACKEND,
        step=9,
        file="transaction.py",
        source="self._release(broken=True)",
        instead="self._release()",
        test_file=PROOF,
        test="test_a_connection_whose_commit_was_broken_off_is_dropped",
    ),
]
