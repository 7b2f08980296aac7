"""What an onlooker sees of the mails: two workers send them, one of which is killed half-way."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, func, select, text

from flask_cronlock.queue.heart import STALLED_AFTER

from .demo_stage import PATIENCE_SECONDS, POLL_SECONDS, say, stuck, wait_for
from .extensions import db
from .models import Mail
from .process import Process

KILL_AFTER = 100
SHOW_EVERY_SECONDS = 10.0

ARRIVED = select(func.count()).select_from(Mail)
LEFT = text("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")
HOLD_INBOX = text("LOCK TABLE inbox IN SHARE MODE")
ALL_UNANSWERED = text("""
    SELECT count(*) FILTER (WHERE instance LIKE :sender || '/%') > 0
           AND count(*) = (SELECT count(*) FROM pg_locks
                           WHERE relation = 'inbox'::regclass AND NOT granted)
    FROM cronlock_item WHERE state = 'started'
""")


@dataclass(frozen=True)
class Mailing:
    """Watches two workers send `total` mails to a server, on an autocommit connection."""

    connection: Connection
    processes: list[Process]
    total: int

    def show(self) -> None:
        """Print how many have arrived, until the queue is empty."""
        first, other, _ = self.processes
        say(f"\nOne mail for each digest, sent by {first.name} and {other.name}")
        wait_for(self.arrived_enough, self.processes, "No mails arrived")
        self.kill_in_the_middle(first)
        self.line(f"all of {first.name} is killed: mails it sent have come, it was not told")
        say(f"  {other.name} goes on, and takes up what {first.name} had in its hands as soon as")
        say(f"  the heartbeat of {first.name} is {STALLED_AFTER:.0f} seconds old")
        self.watch_the_rest(STALLED_AFTER + 2 * PATIENCE_SECONDS)

    def kill_in_the_middle(self, victim: Process) -> None:
        """Kill a worker whose mail has arrived and has not been answered."""
        with db.engine.begin() as barrier:
            # Whatever arrives waits for this.
            barrier.execute(HOLD_INBOX)
            sender = {"sender": victim.name}
            unanswered = partial(self.connection.scalar, ALL_UNANSWERED, sender)
            wait_for(unanswered, self.processes, f"{victim.name} sent nothing")
            victim.kill()

    def watch_the_rest(self, patience: float) -> None:
        """Print now and then how many have arrived."""
        begun = shown = time.monotonic()
        while self.connection.scalar(LEFT):
            now = time.monotonic()
            if now > begun + patience:
                raise stuck(f"Mails are left in the queue after {patience:.0f} s", self.processes)
            if now > shown + SHOW_EVERY_SECONDS:
                shown = now
                self.line(f"after {now - begun:.0f} s")
            time.sleep(POLL_SECONDS)
        self.line(f"after {time.monotonic() - begun:.0f} s, and the queue is empty")

    def line(self, note: str) -> None:
        say(f"  {self.arrived():>5,} of {self.total:,}  {note}")

    def arrived(self) -> int:
        return self.connection.scalar(ARRIVED) or 0

    def arrived_enough(self) -> bool:
        return self.arrived() >= min(KILL_AFTER, self.total // 2)
