"""The run's own context, and no run inside another."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

NESTED = "integration/test_nested_runs.py"

MECHANISMS = [
    Mechanism(
        name="own-context",
        keeps="A run does not share the session and the app context of its caller.",
        invariant=Invariant.ONCE,
        step=1,
        file="contexts.py",
        source="        with fresh_context(app, db):\n            yield\n",
        instead="        yield\n",
        test_file="integration/test_unusual_apps.py",
        test="test_a_session_scope_of_the_apps_own_keeps_the_callers_session",
    ),
    Mechanism(
        name="no-run-inside-a-run",
        keeps="A run inside a run, to which PostgreSQL would grant the lock again, is refused.",
        invariant=Invariant.NO_OVERLAP,
        step=1,
        file="contexts.py",
        source="if (outer := _inside.get()) is not None and not outer.over:",
        instead="if (outer := None) is not None:",
        test_file=NESTED,
        test="test_a_job_that_starts_another_fails_and_its_body_was_entered_once",
    ),
    Mechanism(
        name="forked-child-is-not-inside",
        keeps="A child that the job forks may run jobs and take locks of its own.",
        invariant=Invariant.DUE,
        step=1,
        file="contexts.py",
        source="os.register_at_fork(after_in_child=lambda: _inside.set(None))",
        instead="pass",
        test_file=NESTED,
        test="test_a_forked_child_of_a_job_is_not_inside_it",
    ),
    Mechanism(
        name="nested-ends-with-the-run",
        keeps="After a run its context, and each copy of it, may begin another one.",
        invariant=Invariant.DUE,
        step=1,
        file="contexts.py",
        source="inside.over = True",
        instead="pass",
        test_file=NESTED,
        test="test_work_in_a_copy_of_a_runs_context_is_inside_it_until_it_ends",
    ),
    Mechanism(
        name="callers-session-comes-back",
        keeps="The caller has its session again, also where no context could be begun.",
        invariant=Invariant.NOTHING_LEFT,
        step=1,
        file="contexts.py",
        source="        if callers is not None:\n            registry.set(callers)",
        instead="        pass",
        test_file="integration/test_teardown.py",
        test="test_a_receiver_that_raises_as_the_runs_context_begins_leaves_the_caller_its_own",
    ),
]
