"""What ended long ago is removed, and nothing else."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

KEEPING = "integration/test_queue_keeping.py"
SWEPT = "integration/test_worker_jobs_swept.py"

MECHANISMS = [
    Mechanism(
        name="only-ended-rows-are-removed",
        keeps="A row that waits or is in hand is not removed, however old.",
        invariant=Invariant.NOTHING_LEFT,
        file="queue/sweeping.py",
        source="status IN ('succeeded', 'failed', 'cancelled', 'aborted')",
        instead="true",
        test_file=KEEPING,
        test="test_rows_that_failed_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-own-rows-are-removed",
        keeps="Rows of other namespaces are not removed.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source="          AND queue_name = ANY(%(queues)s::varchar[])\n",
        instead="",
        test_file=KEEPING,
        test="test_rows_that_failed_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-old-rows-are-removed",
        keeps="What failed lately is there to be looked at.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source=" AND event.at > now() - %(history)s)",
        instead=")",
        test_file=KEEPING,
        test="test_rows_that_failed_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-items-done-are-removed",
        keeps="An item that is in doubt or failed is not forgotten.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source="AND state = 'done'\n          AND",
        instead="AND",
        test_file=KEEPING,
        test="test_records_of_items_done_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-own-items-are-removed",
        keeps="Items of other namespaces are not forgotten.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source='ITEMS = """namespace = %(namespace)s AND state',
        instead='ITEMS = """state',
        test_file=KEEPING,
        test="test_records_of_items_done_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-old-items-are-removed",
        keeps="What was done lately is not done again.",
        invariant=Invariant.ONCE,
        file="queue/sweeping.py",
        source="\n          AND finished_at < now() - %(history)s",
        instead="",
        test_file=KEEPING,
        test="test_records_of_items_done_long_ago_are_removed_and_no_others",
    ),
    Mechanism(
        name="only-old-requests-are-removed",
        keeps="What became of a run that was asked for lately can be asked.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source="\n          AND ended_at < now() - %(history)s",
        instead="",
        test_file=SWEPT,
        test="test_only_those_that_ended_long_ago_are_forgotten",
    ),
    Mechanism(
        name="only-own-requests-are-removed",
        keeps="Runs that another namespace was asked for are not forgotten.",
        invariant=Invariant.HISTORY,
        file="queue/sweeping.py",
        source='REQUESTS = """namespace = %(namespace)s AND state',
        instead='REQUESTS = """state',
        test_file=SWEPT,
        test="test_only_those_that_ended_long_ago_are_forgotten",
    ),
    Mechanism(
        name="no-listening-through-a-pooler",
        keeps="No backend of a pooler is made to listen, which would outlast the worker.",
        invariant=Invariant.CLEAN_BACKEND,
        file="queue/connecting.py",
        source="not _is_pooled(connection) and _hears(",
        instead="_hears(",
        test_file="integration/test_queue_connecting.py",
        test="test_at_a_poolers_address_it_looks_and_has_no_backend_listen",
    ),
]
