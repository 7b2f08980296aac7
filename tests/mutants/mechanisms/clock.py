"""The clock, which decides nothing, but must neither miss a slot nor be silent."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

AGENDA = "unit/test_agenda.py"
CATCH_UP = "integration/test_clock_catch_up.py"
FAILURES = "integration/test_clock_failures.py"
HARDSHIPS = "integration/test_clock_hardships.py"
WORKERS = "unit/test_workers.py"

MECHANISMS = [
    Mechanism(
        name="clock-through-the-claim",
        keeps="The clock runs a slot by its name, so that a slow one runs no other slot.",
        invariant=Invariant.ONCE,
        step=4,
        file="clock.py",
        source='run_job(self._app, self._state, job, "clock", slot.at)',
        instead='run_job(self._app, self._state, job, "clock")',
        test_file=CATCH_UP,
        test="test_all_runs_the_newest_max_catch_up_oldest_first",
    ),
    Mechanism(
        name="known-since-is-proved",
        keeps="Since when a job is known is not lost with the answer to a COMMIT.",
        invariant=Invariant.DUE,
        file="dues.py",
        source="            tx.prove()  #",
        instead="            #",
        test_file="integration/test_first_look.py",
        test="test_a_first_look_whose_commit_was_lost_is_done_only_if_it_was_kept",
    ),
    Mechanism(
        name="known-in-the-future-is-not-known",
        keeps="A job that was first seen while the clock was ahead is caught up all the same.",
        invariant=Invariant.DATABASE_TIME,
        file="dues.py",
        source="for job, moment in since.items() if moment <= tx.clock}",
        instead="for job, moment in since.items()}",
        test_file=HARDSHIPS,
        test="test_a_job_that_was_first_seen_in_the_future_is_caught_up_once_time_is_right",
    ),
    Mechanism(
        name="retries-by-the-ledger",
        keeps="A slot that fails is tried again later and later, by however many clocks.",
        invariant=Invariant.HISTORY,
        file="dues.py",
        source="return min(wait, last.astimezone(UTC) + wait - clock)",
        instead="return timedelta()",
        test_file="integration/test_testing_clock.py",
        test="test_a_failed_run_is_fired_again_once_its_time_to_be_tried_again_has_come",
    ),
    Mechanism(
        name="retries-come-to-an-end",
        keeps="A slot that failed too often is left to hits.",
        invariant=Invariant.HISTORY,
        file="dues.py",
        source="return self.attempts > len(RETRY_AFTER)",
        instead="return False",
        test_file=FAILURES,
        test="test_a_slot_that_was_given_up_is_left_to_hits_also_after_a_restart",
    ),
    Mechanism(
        name="catch-up-is-bounded",
        keeps="Days without a clock do not become a crowd of runs.",
        invariant=Invariant.DUE,
        file="catchup.py",
        source="newest_first(schedule, schedule.newest(clock), most):",
        instead="newest_first(schedule, schedule.newest(clock), most + 1):",
        test_file="unit/test_catchup.py",
        test="test_the_latest_slot_is_due_alone_and_all_of_them_oldest_first",
    ),
    Mechanism(
        name="clock-set-back",
        keeps="A clock that is set back is read anew, and waits for no time that was.",
        invariant=Invariant.DATABASE_TIME,
        file="agenda.py",
        source="turned_back = clock < self.clock - STEPPED_BACK",
        instead="turned_back = False",
        test_file=AGENDA,
        test="test_a_clock_set_back_is_read_anew_so_that_no_slot_waits_for_the_old_time",
    ),
    Mechanism(
        name="connection-for-each-worker",
        keeps="A clock has no more workers than its pool has connections for.",
        invariant=Invariant.ONE_CONNECTION,
        file="workers.py",
        source="if not 1 <= count <= room:",
        instead="if False:",
        test_file=WORKERS,
        test="test_too_few_connections_are_refused_with_both_numbers_and_the_cure",
    ),
]
