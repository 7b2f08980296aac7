"""Jobs for workers: a slot is on the queue once, is run once, and what became of it is told."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

HITS = "integration/test_worker_jobs.py"
QUEUED = "integration/test_worker_jobs_queued.py"
RUNS = "integration/test_worker_jobs_run.py"
DEATHS = "integration/test_worker_jobs_deaths.py"
TOLD = "integration/test_worker_jobs_told.py"
CLOCK = "integration/test_worker_jobs_clock.py"

MECHANISMS = [
    Mechanism(
        name="slot-on-the-queue-once",
        keeps="A hit of a slot that is on the queue puts no second row there.",
        invariant=Invariant.ONCE,
        file="queue/requests.py",
        source="live = request.state == QUEUED and queue_state in LIVE",
        instead="live = False",
        test_file=CLOCK,
        test="test_a_slot_that_waits_for_a_worker_is_neither_queued_nor_logged_again",
    ),
    Mechanism(
        name="queue-read-after-the-wait",
        keeps="A hit that waited for another sees what that one put on the queue.",
        invariant=Invariant.ONCE,
        file="queue/requests.py",
        source="""            if _stands(known, queue_state, renews):
                return known, False
""",
        instead="",
        test_file=QUEUED,
        test="test_a_hit_that_waited_for_another_sees_what_that_one_put_on_the_queue[direct]",
    ),
    Mechanism(
        name="request-row-taken",
        keeps="Of two hits at once the second waits for the first, and does not fail.",
        invariant=Invariant.ONCE,
        file="queue/requests.py",
        source="""            set_={"state": table.c.state},
        )
        taken = tx.execute(upsert.returning(table.c.id)).scalar_one()
""",
        instead="""            set_={"state": table.c.state},
        )
        taken = tx.execute(insert.returning(table.c.id)).scalar_one()
""",
        test_file=QUEUED,
        test="test_a_hit_that_waited_for_another_sees_what_that_one_put_on_the_queue[direct]",
    ),
    Mechanism(
        name="ended-request-begins-anew",
        keeps="A hit that comes while a worker gives a request up is not lost with it.",
        invariant=Invariant.DUE,
        file="queue/requests.py",
        source="live = request.state == QUEUED and queue_state",
        instead="live = queue_state",
        test_file=RUNS,
        test="test_a_hit_while_the_worker_ends_it_is_not_lost[direct]",
    ),
    Mechanism(
        name="run-of-its-own-row",
        keeps="A row that is delivered again after its request has ended runs nothing.",
        invariant=Invariant.ONCE,
        file="queue/requests.py",
        source="table.c.queue_row == queue_row, table.c.state == QUEUED\n",
        instead="table.c.id.is_not(None)\n",
        test_file=DEATHS,
        test="test_a_row_that_is_delivered_again_after_its_request_has_ended_runs_nothing[direct]",
    ),
    Mechanism(
        name="nothing-queued-that-would-not-run",
        keeps="What is paused, done or broken is answered at once, and asks no worker.",
        invariant=Invariant.HISTORY,
        file="queue/handover.py",
        source="if not admission.open:",
        instead="if False:",
        test_file=HITS,
        test="test_what_would_not_be_run_is_not_put_on_the_queue[direct]",
    ),
    Mechanism(
        name="runs-counted-first",
        keeps="A job that brings its workers down is not the death of workers without end.",
        invariant=Invariant.NOT_SILENT,
        file="queue/errand.py",
        source="if request.runs > MOST_RUNS:",
        instead="if False:",
        test_file=DEATHS,
        test="test_a_job_that_brings_its_workers_down_does_so_five_times[direct]",
    ),
    Mechanism(
        name="runs-come-to-an-end",
        keeps="A job that fails on workers is given up, and its last failure told.",
        invariant=Invariant.NOT_SILENT,
        file="queue/errand.py",
        source="last = request.runs >= MOST_RUNS",
        instead="last = False",
        test_file=RUNS,
        test="test_a_run_that_fails_is_followed_by_others_ever_later_and_then_given_up[direct]",
    ),
    Mechanism(
        name="named-slot-on-the-worker",
        keeps="A worker runs the slot that was asked for, and not the newest by then.",
        invariant=Invariant.ONCE,
        step=4,
        file="queue/errand.py",
        source='run_job(self._app, self._state, job, "queue", request.scheduled_at)',
        instead='run_job(self._app, self._state, job, "queue")',
        test_file=QUEUED,
        test="test_each_slot_has_a_row_of_its_own[direct]",
    ),
    Mechanism(
        name="running-elsewhere-is-waited-for",
        keeps="A request whose job is running elsewhere is tried again, since that run may fail.",
        invariant=Invariant.DUE,
        file="queue/errand.py",
        source="outcome.reason is Reason.ALREADY_RUNNING:",
        instead="False:",
        test_file=RUNS,
        test="test_what_is_running_elsewhere_is_waited_for[direct]",
    ),
    Mechanism(
        name="kept-run-is-found",
        keeps="A run whose worker died after its COMMIT is not made again, with or without a slot.",
        invariant=Invariant.ONCE,
        file="queue/errand.py",
        source="if request.runs > 1 and",
        instead="if False and",
        test_file=DEATHS,
        test="test_a_run_whose_worker_died_after_its_commit_is_not_made_again[direct-None]",
    ),
    Mechanism(
        name="kept-run-is-the-requests-own",
        keeps="A run without a slot that was made for another hit is not taken for this one's.",
        invariant=Invariant.DUE,
        file="queue/requests.py",
        source="            run.started_at >= mine.requested_at,\n",
        instead="",
        test_file=DEATHS,
        test="test_a_run_that_was_kept_before_the_hit_is_another_one[direct]",
    ),
    Mechanism(
        name="state-told-to-bearers-alone",
        keeps="Without the secret nobody learns what became of a run.",
        invariant=Invariant.SECRETS,
        file="views.py",
        source="""        if not authenticator.authenticate(request):
            return UNAUTHORIZED
        if asked:
            return _look_up(state, asked[1])
""",
        instead="""        if asked:
            return _look_up(state, asked[1])
        if not authenticator.authenticate(request):
            return UNAUTHORIZED
""",
        test_file=TOLD,
        test="test_without_the_secret_nothing_is_told_not_even_what_there_is",
    ),
    Mechanism(
        name="address-on-no-host",
        keeps="The address of a run is a path of this host, whatever a request's headers say.",
        invariant=Invariant.SECRETS,
        file="views.py",
        source='"/" + quote(path.lstrip("/"))',
        instead="quote(path)",
        test_file=TOLD,
        test="test_its_address_is_below_the_apps_root_and_never_on_the_requests_host",
    ),
    Mechanism(
        name="clock-hands-over",
        keeps="A clock has a worker asked, and runs no job for workers itself.",
        invariant=Invariant.NO_OVERLAP,
        file="clock.py",
        source="self._hand_over(firing) if job.on_worker else self._run_here(firing)",
        instead="self._run_here(firing)",
        test_file=CLOCK,
        test="test_a_slot_that_waits_for_a_worker_is_neither_queued_nor_logged_again",
    ),
    Mechanism(
        name="clock-waits-for-the-worker",
        keeps="All slots that are caught up are run in their order, on workers too.",
        invariant=Invariant.DUE,
        file="lookout.py",
        source="case Ran() | Skipped(Reason.ALREADY_RAN",
        instead="case Queued() | Ran() | Skipped(Reason.ALREADY_RAN",
        test_file=CLOCK,
        test="test_all_slots_are_caught_up_oldest_first_each_after_the_one_before",
    ),
    Mechanism(
        name="given-up-is-left-by-the-clock",
        keeps="What workers gave up is not begun anew by a clock, over and over.",
        invariant=Invariant.NOT_SILENT,
        file="queue/handover.py",
        source=', run.trigger != "clock"\n',
        instead=", True\n",
        test_file=CLOCK,
        test="test_what_its_workers_gave_up_is_begun_anew_by_a_hit_and_by_no_clock",
    ),
    Mechanism(
        name="given-up-is-settled",
        keeps="A clock goes on to the next slot after one that workers gave up.",
        invariant=Invariant.DUE,
        file="lookout.py",
        source="            case Queued(given_up=True):\n",
        instead="            case None:\n",
        test_file=CLOCK,
        test="test_what_its_workers_gave_up_is_begun_anew_by_a_hit_and_by_no_clock",
    ),
    Mechanism(
        name="only-what-failed-is-given-up",
        keeps="A slot that was paused on the worker is run once the job goes on.",
        invariant=Invariant.DUE,
        file="queue/requests.py",
        source='return self.state == ENDED and "error" in self.about',
        instead="return self.state == ENDED",
        test_file=CLOCK,
        test="test_one_that_was_paused_on_the_worker_is_handed_over_again_once_it_goes_on",
    ),
    Mechanism(
        name="told-of-one-moment",
        keeps="A run that ends while it is told of is not called lost.",
        invariant=Invariant.NOT_SILENT,
        file="queue/requests.py",
        source="""        return Request(**about), found["queue_state"]
""",
        instead="""        again = tx.execute(select(queue_state).where(*which))
        return Request(**about), again.scalar_one()
""",
        test_file=TOLD,
        test="test_a_run_that_ends_while_it_is_told_of_is_not_lost",
    ),
    Mechanism(
        name="handover-is-proved",
        keeps="Whether a worker was asked is found out where the COMMIT's answer was lost.",
        invariant=Invariant.NOT_SILENT,
        file="queue/handover.py",
        source="            tx.prove()\n",
        instead="",
        test_file="integration/test_worker_jobs_lost.py",
        test="test_a_hit_whose_commit_was_lost_is_answered_as_it_was_kept[Cut.BEFORE-503]",
    ),
]
