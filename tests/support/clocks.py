"""Embedded clocks in threads, what they log, and what they leave in the ledger."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from sqlalchemy import Engine, event

from flask_cronlock.clock import Clock
from flask_cronlock.injected import injected
from flask_cronlock.lookout import Lookout
from flask_cronlock.state import AppState, this_state

from .processes import wait_until
from .worlds import World

logger = logging.getLogger("flask_cronlock")
SECOND = timedelta(seconds=1)


class Log(logging.Handler):
    """Every record of the package while the block lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, action: str, job: str = "") -> list[str]:
        """Return the messages of one action; those that name *job*, where it is given."""
        found = [
            record.getMessage()
            for record in list(self.records)
            if record.__dict__.get("action") == action
        ]
        return [message for message in found if not job or job in message.split()]

    def troubles(self) -> list[str]:
        """Return what is worse than a notice, or carries a traceback."""
        return [
            record.getMessage()
            for record in list(self.records)
            if record.levelno > logging.INFO or record.exc_info
        ]


@contextmanager
def logged() -> Iterator[Log]:
    log, level = Log(), logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        yield log
    finally:
        logger.setLevel(level)
        logger.removeHandler(log)


@dataclass
class Clocks:
    """Clocks that run, each in a thread."""

    log: Log
    _running: list[tuple[Clock, threading.Thread]] = field(default_factory=list)

    def start(self, world: World, workers: int | None = None, grace: float = 20) -> None:
        clock = clock_of(world, workers, grace)
        thread = threading.Thread(target=clock.run, daemon=True)
        thread.start()
        self._running.append((clock, thread))

    def stop(self) -> None:
        """Let all end; those of one block that are started later are new ones."""
        running, self._running = self._running, []
        for clock, _ in running:
            clock.stop()
        for _, thread in running:
            thread.join(30)
            assert not thread.is_alive(), "a clock did not stop"


def clock_of(world: World, workers: int | None = None, grace: float = 20) -> Clock:
    return Clock(world.app, state_of(world), workers, timedelta(seconds=grace))


def state_of(world: World) -> AppState:
    with world.app.app_context():
        return this_state()


def engine_of(world: World) -> Engine:
    with world.app.app_context():
        return world.db.engine


def lookout_of(world: World) -> Lookout:
    """Return what a clock looks through, to be moved by hand."""
    return Lookout(engine_of(world), state_of(world))


@contextmanager
def ticking(*worlds: World, workers: int | None = None, grace: float = 20) -> Iterator[Clocks]:
    """Run a clock for each world until the end of the block."""
    with logged() as log:
        clocks = Clocks(log)
        try:
            for world in worlds:
                clocks.start(world, workers, grace)
            yield clocks
        finally:
            clocks.stop()


def slots_of(world: World, job: str, *states: str) -> list[datetime]:
    """Return the times of the job's slots in the ledger, in order; in all states or in *states*."""
    rows = world.database.query(
        "SELECT scheduled_at FROM cronlock_run WHERE job = %s AND state = ANY(%s)"
        " ORDER BY scheduled_at",
        job,
        list(states or ("done", "missed", "broken", "running")),
    )
    return [at.astimezone(UTC) for (at,) in rows]


def has_run(world: World, job: str, times: int) -> bool:
    return len(slots_of(world, job, "done")) >= times


def attempts_of(world: World, job: str) -> int:
    counted = "SELECT count(*) FROM cronlock_attempt WHERE job = %s"
    return int(world.database.value(counted, job))


def without_gap(slots: Sequence[datetime], every: timedelta = SECOND) -> bool:
    return len(slots) > 1 and all(later - earlier == every for earlier, later in pairwise(slots))


def know_jobs(world: World, since: datetime) -> None:
    """Write that clocks have known all jobs *since* then."""
    for job, schedule in lookout_of(world).schedules.items():
        world.database.query(
            "INSERT INTO cronlock_job (namespace, job, schedule, known_since)"
            " VALUES ('', %s, %s, %s) ON CONFLICT DO NOTHING",
            *(job.identity, str(schedule), since),
        )


class Hands:
    """The clock that worlds go by; it stands until it is moved."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def read(self) -> datetime:
        return self.now

    def move(self, **how: float) -> None:
        self.now += timedelta(**how)


@contextmanager
def hands_of(now: datetime, *worlds: World) -> Iterator[Hands]:
    hands = Hands(now)
    with ExitStack() as stack:
        for world in worlds:
            stack.enter_context(injected(engine_of(world), hands.read))
        yield hands


def count_looks(world: World) -> Callable[..., None]:
    """Return what waits until the world's clock has looked some times more."""
    seen: list[object] = []
    event.listen(engine_of(world), "checkout", lambda *_: seen.append(1))

    def wait(times: int = 4) -> None:
        goal = len(seen) + times
        wait_until(lambda: len(seen) >= goal)

    return wait
