"""What the database holds at the end, beside the effects."""

from __future__ import annotations

from ..support.databases import Database
from ..support.processes import wait_until
from .checker import Effect

RUNS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%' AND state <> 'idle'
"""
UNFINISHED = "SELECT count(*) FROM cronlock_run WHERE state <> 'done'"
DONE = """
SELECT job, to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), id::text
FROM cronlock_run WHERE state = 'done'
"""
FAILED_AND_DONE = "SELECT count(*) FROM cronlock_attempt JOIN cronlock_run USING (id)"


def wait_for_quiet(database: Database, seconds: float) -> None:
    """Wait until no run is left, or the time is up: then its lock is what is complained of."""
    try:
        wait_until(lambda: database.value(RUNS) == 0, seconds)
    except AssertionError:
        return


def effects_in(database: Database) -> list[Effect]:
    found = database.query("SELECT job, slot, run FROM effect")
    return [(job, slot, run) for job, slot, run in found]


def complaints(database: Database, effects: list[Effect]) -> list[str]:
    """Return what is not as it should be when nothing runs."""
    done = [(job, slot, run) for job, slot, run in database.query(DONE)]
    counts = {
        "advisory locks held": database.advisory_locks(),
        "rows of the ledger not done": database.value(UNFINISHED),
        "runs both failed and done": database.value(FAILED_AND_DONE),
        "done rows without their effect": len(set(done) - set(effects)),
        "effects without their done row": len(set(effects) - set(done)),
        "done rows more than slots": len(done) - len({row[:2] for row in done}),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]
