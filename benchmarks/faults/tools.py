"""The tools that are compared: what each does, and why it fares as it does."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from .body import Body
from .hit import Place, Tool


def find_redis() -> str | None:
    """Return the path of Redis's server: what REDIS_SERVER says, or what is installed."""
    return shutil.which(os.environ.get("REDIS_SERVER") or "redis-server")


@dataclass(frozen=True)
class Entry:
    """One tool; its module is loaded by those who use it only."""

    key: str
    name: str
    place: str
    """Its class, as module:name."""
    does: str
    why: str
    package: str = ""
    """What has to be installed for it."""
    needs_redis: bool = False
    keeps_time: bool = False
    """Whether it fires by itself, and so gives no answer to anybody."""

    def make(self, place: Place, body: Body) -> Tool:
        module, _, name = self.place.partition(":")
        tool: Tool = getattr(import_module(f"benchmarks.faults.{module}"), name)(place, body)
        return tool

    @property
    def version(self) -> str | None:
        """Return name and version of its package, if it has one and that is installed."""
        if not self.package:
            return None
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return None

    @property
    def missing(self) -> str:
        """Say what keeps it from taking part, if anything does."""
        if self.package and not self.version:
            return f"{self.package} is not installed"
        return "" if find_redis() or not self.needs_redis else "redis-server is not installed"


TOOLS = (
    Entry(
        "cronlock",
        "Flask-CronLock",
        "by_cronlock:ByCronLock",
        "lock, claim and work in one transaction; a timeout",
        "Lock, claim and work are one transaction, and end with one commit. What a killed "
        "worker or an ended backend was at is undone as a whole, so the slot is open for the "
        "next hit; a repeat finds the claim, and is told so. A frozen worker loses its "
        "transaction when the time limit is over: until then nobody else runs the job, and what "
        "it does when it wakes up cannot be committed.",
        package="Flask-CronLock",
    ),
    Entry(
        "session-lock",
        "PALs",
        "by_session_lock:BySessionLock",
        "session-level advisory lock, then the work on the app's session, then the unlock",
        "The lock, the work and the unlock are transactions of their own, and PgBouncer gives "
        "each whichever backend is free. The lock stays at the one that granted it. A worker "
        "that comes by the same backend is given the lock again, since it looks like its owner: "
        "two run at once. An unlock that comes by another one frees nothing, or a lock that is "
        "somebody else's. What is left behind keeps the job from running until that backend "
        "ends; the faults here, which end backends, are a help. It is meant for direct "
        "connections. Nothing says what ran, so repeats run again. The lock's engine has "
        "AUTOCOMMIT here, in favour of PALs: by default its clean-up leaves a transaction open, "
        "which keeps one of the pooler's backends.",
        package="PALs",
    ),
    Entry(
        "transaction-lock",
        "transaction lock alone",
        "by_transaction_lock:ByTransactionLock",
        "`pg_try_advisory_xact_lock` in the work's transaction; no claim, no timeout",
        "As a lock it does well, and through the pooler too: it begins and ends with the work's "
        "transaction, so no two run at once, nothing is left behind, and what was undone can be "
        "done again. But it has no memory: whoever comes after the commit runs the slot again, "
        "be it a repeat or a hit that was late. And it has no time limit: a frozen worker keeps "
        "the lock for as long as it is frozen.",
    ),
    Entry(
        "lease",
        "row lease",
        "by_lease:ByLease",
        "ShedLock's way: a row taken until a time, then the work, then given back",
        "While nobody is frozen for longer than the lease it keeps runs apart, on any pooler. "
        "But the lease ends by the clock, not with the work's transaction: a worker that was "
        "frozen for longer can wake up in a transaction that is still good, beside another run, "
        "and both are committed. The lease of a killed worker keeps the job from running until "
        "its time is over. It says who runs, not what ran, so repeats run again. A minimum time "
        "for the lease (lockAtLeastFor) swallows the repeats that come within it, and the "
        "retries of a failed run as well; it was not set.",
    ),
    Entry(
        "redis",
        "redis-py's Lock",
        "by_redis:ByRedis",
        "a key in Redis with a time to live, then the work, then the release",
        "The same as the row lease, with another server to run. The release knows whether the "
        "lock is still one's own, and raises where it is not. That is honest about the lock, "
        "but comes after the work's commit: the caller is told of an error, and the effect is "
        "there.",
        package="redis",
        needs_redis=True,
    ),
    Entry(
        "scheduler",
        "APScheduler in each worker",
        "by_scheduler:ByScheduler",
        "a BackgroundScheduler in every worker, nothing between them",
        "Each worker has its own timer and knows of no other: a slot has as many effects as "
        "there are workers up, all at the same time. It needs no lock and waits for nobody, so "
        "little is missed: what one worker is killed at, the others do. It is made for one "
        "process only; that one would have nobody to stand in for it.",
        package="APScheduler",
        keeps_time=True,
    ),
)
