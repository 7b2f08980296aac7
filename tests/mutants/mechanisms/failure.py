"""What is recorded of a failure."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

FAILURES = "integration/test_failures.py"

MECHANISMS = [
    Mechanism(
        name="attempt-recorded",
        keeps="A failed run leaves its attempt.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="runner.py",
        source="        reports.record(run, failed, tx.stamp())\n",
        instead="",
        test_file=FAILURES,
        test="test_every_attempt_is_recorded",
    ),
    Mechanism(
        name="no-attempt-of-a-run-that-is-there",
        keeps="A run whose row is there after all leaves no failed attempt.",
        invariant=Invariant.NOTHING_LEFT,
        step=10,
        file="ledger.py",
        source="if tx.execute(select(self.run.c.id).where(same_run)).one_or_none() is None:",
        instead="if True:",
        test_file="integration/test_proof.py",
        test="test_an_attempt_is_recorded_only_where_the_run_is_not_there",
    ),
    Mechanism(
        name="visible-claim-is-broken",
        keeps="A claim that a raw COMMIT made visible is marked broken at once.",
        invariant=Invariant.ONCE,
        step=10,
        file="ledger.py",
        source='self._break.where(same_run), {"why": error, "stamp": stamp}).rowcount:',
        instead='select(1).where(text("false"))).all():',
        test_file="integration/test_job_transaction.py",
        test="test_a_raw_commit_breaks_the_slot_until_it_is_forced[commit_by_text]",
    ),
    Mechanism(
        name="interrupt-is-raised",
        keeps="What ends the process is recorded, and raised all the same.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="runner.py",
        source="if isinstance(error, (KeyboardInterrupt, GeneratorExit)):",
        instead="if False:",
        test_file=FAILURES,
        test="test_what_ends_a_process_is_recorded_and_raised",
    ),
    Mechanism(
        name="timeout-is-called-one",
        keeps="A run that the server ended for its length is called a timeout.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="sqlerrors.py",
        source="    if late:\n        return _because_of(error, JobTimeout())",
        instead="",
        test_file="integration/test_limits.py",
        test="test_a_shorter_limit_that_the_job_set_itself_is_a_timeout_too",
    ),
    Mechanism(
        name="failure-to-record-is-told",
        keeps="A failed attempt that cannot be recorded is logged, and the outcome stands.",
        invariant=Invariant.NOT_SILENT,
        step=10,
        file="reports.py",
        source="""\
        except Exception as error:
            with _log_may_fail():
                logger.error(""",
        instead="""\
        except ZeroDivisionError as error:
            with _log_may_fail():
                logger.error(""",
        test_file=FAILURES,
        test="test_a_failed_attempt_that_cannot_be_recorded_is_logged",
    ),
    Mechanism(
        name="broken-is-kept",
        keeps="A slot that was found broken is marked so for good.",
        invariant=Invariant.NOT_SILENT,
        step=5,
        file="refusal.py",
        source="        tx.commit()\n",
        instead="",
        test_file="integration/test_job_transaction.py",
        test="test_a_claim_whose_raw_commit_was_followed_by_a_kill_is_broken_too",
    ),
    Mechanism(
        name="subscribers-undone",
        keeps="What a subscriber does to the job's transaction is undone.",
        invariant=Invariant.NOTHING_LEFT,
        step=7,
        file="reports.py",
        source="        tx.execute(ROLL_BACK)\n",
        instead="",
        test_file="integration/test_signals_and_logs.py",
        test="test_what_a_job_started_subscriber_does_to_the_session_changes_nothing",
    ),
    Mechanism(
        name="subscribers-stop-nobody",
        keeps="A subscriber that raises changes no outcome.",
        invariant=Invariant.NOTHING_LEFT,
        file="signals.py",
        source="        except Exception as error:",
        instead="        except ZeroDivisionError as error:",
        test_file="integration/test_signals_and_logs.py",
        test="test_a_subscriber_that_raises_is_logged_and_stops_nobody",
    ),
]
