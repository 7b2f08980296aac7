"""Items whose effect is outside the database: attempts are counted, and doubts are kept."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

AGAIN = "integration/test_items_at_least_once.py"
KILLED_AGAIN = "test_workers_that_are_killed_in_the_call_call_it_as_often_as_is_allowed"
LOST = "integration/test_items_lost_commit.py"
MOST = "integration/test_items_at_most_once.py"
ONCE = "integration/test_items_once.py"
WRITTEN_AGAIN = "test_what_became_of_a_call_is_written_again_where_its_commit_is_lost"

MECHANISMS = [
    Mechanism(
        name="no-more-than-the-attempts",
        keeps="No item is called more often than it has attempts.",
        invariant=Invariant.NOT_SILENT,
        file="queue/records.py",
        source='left = table.c.attempts + more <= bindparam("most", type_=Integer)',
        instead='left = table.c.attempts + more < bindparam("most", type_=Integer) + 99',
        test_file=AGAIN,
        test=KILLED_AGAIN,
    ),
    Mechanism(
        name="at-most-once-is-not-called-again",
        keeps="At most once: what was begun and never ended is not called again.",
        invariant=Invariant.ONCE,
        file="queue/outside.py",
        source="follows = desk.task.delivery is Delivery.AT_LEAST_ONCE",
        instead="follows = True",
        test_file=MOST,
        test="test_a_worker_that_was_killed_in_the_call_leaves_it_in_doubt",
    ),
    Mechanism(
        name="killed-is-in-doubt",
        keeps="At least once: a call that never ended leaves the item in doubt until it is done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/records.py",
        source='or_(table.c.in_doubt, bindparam("doubts", type_=Boolean) & was_started)',
        instead='or_(table.c.in_doubt, bindparam("doubts", type_=Boolean) & (follows == None))',
        test_file=AGAIN,
        test=KILLED_AGAIN,
    ),
    Mechanism(
        name="error-leaves-a-doubt",
        keeps="At most once: what may have been done is not done again after an error.",
        invariant=Invariant.ONCE,
        file="queue/desk.py",
        source="if again and (sure or delivery is not Delivery.AT_MOST_ONCE):",
        instead="if again:",
        test_file=MOST,
        test="test_an_error_leaves_it_in_doubt_and_it_is_never_called_again[error0]",
    ),
    Mechanism(
        name="doubt-is-not-forgotten",
        keeps="A call of which nothing is known stays a doubt, whatever later ones say.",
        invariant=Invariant.NOT_SILENT,
        file="queue/desk.py",
        source="(record.in_doubt or not sure)",
        instead="(not sure)",
        test_file=AGAIN,
        test=("test_what_is_given_up_is_in_doubt_unless_it_was_surely_never_done[first not known]"),
    ),
    Mechanism(
        name="not-done-is-tried-again",
        keeps="What surely was not done is tried again, whatever the delivery is.",
        invariant=Invariant.NOT_SILENT,
        file="queue/desk.py",
        source="isinstance(error, NotDone)",
        instead="False",
        test_file=MOST,
        test="test_what_was_surely_not_done_is_tried_again",
    ),
    Mechanism(
        name="lost-writes-of-a-call-are-told",
        keeps="What a call wrote to the database is not lost to a swallowed error of SQL.",
        invariant=Invariant.NOT_SILENT,
        file="queue/outside.py",
        source="            mind_commits(session, db.engine)\n",
        instead="",
        test_file=AGAIN,
        test="test_what_a_call_writes_is_kept_with_its_end_or_it_has_failed",
    ),
    Mechanism(
        name="outcome-is-written-late",
        keeps="What became of a call is written as soon as the database is there again.",
        invariant=Invariant.ONCE,
        file="queue/brief.py",
        source="PATIENCE = 600.0",
        instead="PATIENCE = 0.0",
        test_file=LOST,
        test="test_a_database_that_is_away_for_a_while_after_a_call_learns_of_it",
    ),
    Mechanism(
        name="outcome-is-written-again",
        keeps="What became of a call is written again where it is not known if it was kept.",
        invariant=Invariant.ONCE,
        file="queue/brief.py",
        source="        except (Unavailable, OutcomeUnknown):\n",
        instead="        except Unavailable:\n",
        test_file=LOST,
        test=f"{WRITTEN_AGAIN}[Cut.AFTER-True-at_most_once]",
    ),
    Mechanism(
        name="other-releases-arguments-cost-no-attempt",
        keeps="A row whose arguments the function here does not take waits for another release.",
        invariant=Invariant.NOT_SILENT,
        file="queue/work.py",
        source="        _refuse_unknown(desk.task, item)\n",
        instead="        pass\n",
        test_file="integration/test_items_of_other_releases.py",
        test="test_arguments_that_the_function_here_does_not_take_cost_no_attempt[at_most_once]",
    ),
]
