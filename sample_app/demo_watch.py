"""What an onlooker sees of the clocks at work: the ledger, from outside, and the outbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select, text

from . import outbox
from .demo_stage import wait_for
from .extensions import cron, db
from .instance import Instance

T = TypeVar("T")

RUN = cron.ledger.run.c
NEWEST_RUNS = (
    select(RUN.id, RUN.scheduled_at, RUN.started_at, RUN.instance, RUN.value)
    .where(RUN.state == "done")
    .order_by(RUN.finished_at.desc())
    .limit(100)
)
RUNS_PER_SLOT = (
    select(RUN.scheduled_at, func.count()).where(RUN.state == "done").group_by(RUN.scheduled_at)
)
HOLD_OUTBOX = text("LOCK TABLE outbox IN SHARE MODE")
HELD_WRITER = text("""
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE relation = 'outbox'::regclass AND NOT granted LIMIT 1
""")


@dataclass(frozen=True)
class Watch:
    """Watches what `instances` write to the ledger, on an autocommit connection."""

    connection: Connection
    instances: list[Instance]

    def runs(self) -> Iterator[Any]:
        """Yield each run that ended well, once it has."""
        seen: set[Any] = set()
        while True:
            for run in reversed(self.wait_for(lambda: self.new_runs(seen))):
                seen.add(run.id)
                yield run

    def new_runs(self, seen: set[Any]) -> list[Any]:
        return [run for run in self.connection.execute(NEWEST_RUNS) if run.id not in seen]

    def kill_in_the_middle(self) -> tuple[Instance, str]:
        """Kill the instance that runs the next slot, before its digests are written.

        Return it, and which of its processes ran the slot.
        """
        with db.engine.begin() as barrier:
            # Whoever is about to write digests waits for this.
            barrier.execute(HOLD_OUTBOX)
            writer = self.wait_for(lambda: self.connection.scalar(HELD_WRITER)).split()[-1]
            victim = next(one for one in self.instances if writer.startswith(f"{one.name}/"))
            victim.kill()
        return victim, writer

    def wait_for(self, look: Callable[[], T]) -> T:
        """Return what `look` sees, as soon as it sees something."""
        return wait_for(look, self.instances, "No clock ran a slot")


def count() -> tuple[dict[datetime, int], dict[tuple[bool, int], int]]:
    """Return the runs of each slot and the digests per user and slot, both of one moment."""
    session = db.session()
    session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    runs: dict[datetime, int] = dict(session.execute(RUNS_PER_SLOT).tuples().all())
    digests = outbox.per_user(session)
    db.session.remove()
    return runs, digests
