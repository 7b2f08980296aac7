"""The claim, and what is read with it."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

CLAIMS = "integration/test_claims.py"
MISSED = "integration/test_missed_slots.py"
OLDER = "test_an_older_slot_that_runs_under_another_key_is_not_recorded_and_not_waited_for"
RENAMED = "integration/test_renamed_jobs.py"

MECHANISMS = [
    Mechanism(
        name="claim",
        keeps="A slot runs once also where two releases compute different lock keys.",
        invariant=Invariant.ONCE,
        step=6,
        file="ledger.py",
        source='"slot_key": run.slot_key,\n        "scheduled_at"',
        instead='"slot_key": None,\n        "scheduled_at"',
        test_file="integration/test_once.py",
        test="test_a_slot_runs_once_and_says_so_after_that",
    ),
    Mechanism(
        name="only-missed-is-overtaken",
        keeps="Of all rows of a slot only one that says that it was missed can be taken over.",
        invariant=Invariant.ONCE,
        step=6,
        file="statements.py",
        source='        where=run.c.state == "missed",\n',
        instead="",
        test_file=CLAIMS,
        test="test_a_loser_that_waits_for_the_claim_learns_how_the_winner_ended[done]",
    ),
    Mechanism(
        name="missed-is-overtaken",
        keeps="A slot that was missed can still be run.",
        invariant=Invariant.DUE,
        step=6,
        file="statements.py",
        source='        where=run.c.state == "missed",\n',
        instead="        where=false(),\n",
        test_file=MISSED,
        test="test_a_slot_that_was_missed_can_be_run_by_name_and_is_then_done",
    ),
    Mechanism(
        name="claim-with-a-snapshot-of-its-own",
        keeps="What decides is read after the lock, in a statement of its own.",
        invariant=Invariant.ONCE,
        step=6,
        file="borrowed.py",
        source="= IsolationLevel.READ_COMMITTED",
        instead="= IsolationLevel.REPEATABLE_READ",
        test_file=CLAIMS,
        test="test_a_loser_that_waits_for_the_claim_learns_how_the_winner_ended[done]",
    ),
    Mechanism(
        name="ran-under-another-name",
        keeps="What ran under another name of the job meanwhile has run.",
        invariant=Invariant.ONCE,
        step=6,
        file="ledger.py",
        source="if row is None or row.ran:",
        instead="if row is None:",
        test_file=RENAMED,
        test="test_what_ran_under_another_name_while_the_locks_were_asked_for_has_run",
    ),
    Mechanism(
        name="missed-is-recorded",
        keeps="The run that wins records the slots before it that nobody will run.",
        invariant=Invariant.NOT_SILENT,
        step=6,
        file="ledger.py",
        source="self._record_missed(tx, run, look_back(run, row.last_ran, row.since))",
        instead="look_back(run, row.last_ran, row.since)",
        test_file=MISSED,
        test="test_the_run_that_wins_records_the_open_slots_since_the_last_that_ran",
    ),
    Mechanism(
        name="a-hundred-missed-at-most",
        keeps="After a long time without runs no more than a hundred missed slots are recorded.",
        invariant=Invariant.HISTORY,
        step=6,
        file="catchup.py",
        source="schedule.previous(slot), MOST_MISSED)",
        instead="schedule.previous(slot), MOST_MISSED + 1)",
        test_file="unit/test_catchup.py",
        test="test_no_more_than_a_hundred_are_told_of_and_those_are_the_newest",
    ),
    Mechanism(
        name="rows-stay-where-slots-are-missed",
        keeps="A slot that has a row is not recorded as missed.",
        invariant=Invariant.ONCE,
        step=6,
        file="statements.py",
        source="""\
    return postgresql.insert(run).on_conflict_do_nothing(
        index_elements=[run.c.namespace, run.c.job, run.c.slot_key]
    )""",
        instead="    return postgresql.insert(run)",
        test_file=MISSED,
        test="test_a_slot_that_has_a_row_keeps_it",
    ),
    Mechanism(
        name="missed-waits-only-so-long",
        keeps="To record missed slots no run waits for another one.",
        invariant=Invariant.NO_OVERLAP,
        step=6,
        file="ledger.py",
        source='tx.execute(LIMIT_WAIT, {"lock_timeout": milliseconds(tx.lock_wait)})',
        instead="pass",
        test_file=MISSED,
        test=f"{OLDER}[3s]",
    ),
]
