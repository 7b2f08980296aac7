"""The runs that are cut off: each can be made again and again, for one number after another."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from flask_cronlock import Failed, Skipped
from flask_cronlock.exceptions import CronLockError, OutcomeUnknown

from .clocks import engine_of
from .processes import wait_until
from .worlds import World

MINUTE = timedelta(minutes=1)
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=300)

BACKENDS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
"""

DECISIVE = b"INSERT INTO cronlock_run", b"COMMIT\0"
"""What a run says when it claims its slot, and at its end."""


class Planned(Exception):
    """The job fails, as it is meant to."""


class Told(enum.Enum):
    """What the caller was told of the effect."""

    KEPT = "it is there"
    NOTHING = "nothing was done"
    UNKNOWN = "it may be there"


class Play:
    """A run that wins its slot and writes one note."""

    name = "winner"
    job = "winner"
    timeout = "20s"
    step = 1
    """How many slots lie between two numbers; those between are missed."""
    once = True
    """Whether the clean retry finds what was kept, and adds nothing to it."""
    settles = True
    """Whether nobody is ever told that an effect may be there, while the server can be asked."""
    ends = Told.KEPT
    """What a run that nothing happens to tells, before the clean retry."""
    how: ClassVar[Mapping[str, Any]] = {}
    """What else the run is called with."""
    before: tuple[str, ...] = ()
    """The names that the job had before; the first is the ledger's."""

    def __init__(self, world: World, suffix: str = "") -> None:
        self.world, self.number = world, 0
        self.job = f"{self.job}-{suffix}" if suffix else self.job
        register = world.cron.job(
            self.job,
            every="1m",
            max_lateness="1000d",
            timeout=self.timeout,
            previous_names=self.before,
        )
        register(self.work)

    def work(self) -> None:
        self.world.note(self.text)

    @property
    def text(self) -> str:
        """What the present number writes."""
        return f"{self.job} {self.number}"

    @property
    def identity(self) -> str:
        """What the ledger calls the job."""
        return next(iter(self.before), self.job)

    @property
    def slot(self) -> datetime:
        return START + self.number * self.step * MINUTE

    @contextmanager
    def set(self) -> Iterator[None]:
        """Set the stage for the next number, until the clean retry."""
        self.number += 1
        yield

    def act(self) -> Any:
        """Make the run, and return its outcome."""
        return self.world.run(self.job, slot=self.slot, **self.how)

    def tell(self) -> Told:
        """Make the run, and return what is told of it; any other error than ours is a fault."""
        try:
            return self.told_by(self.act())
        except OutcomeUnknown:
            return Told.UNKNOWN
        except CronLockError:
            return Told.NOTHING

    def told_by(self, outcome: Any) -> Told:
        if isinstance(outcome, Failed):
            assert isinstance(outcome.error, (CronLockError, Planned)), outcome
            return Told.UNKNOWN if isinstance(outcome.error, OutcomeUnknown) else Told.NOTHING
        return Told.NOTHING if isinstance(outcome, Skipped) else Told.KEPT

    def check_told(self, told: Told, before: int) -> None:
        """See that *told* is true of the effect, which was there *before* so many times."""
        added = {Told.KEPT: (1,), Told.NOTHING: (0,), Told.UNKNOWN: (0, 1)}[told]
        assert self.kept() - before in added, told

    def kept(self) -> int:
        """Return how often the effect is in the database."""
        return self.count("SELECT count(*) FROM note WHERE text = %s", self.text)

    def count(self, query: str, *values: object) -> int:
        row = self.world.probe.execute(query, values or None).fetchone()
        assert row
        return int(row[0])

    def check(self) -> None:
        """See that the ledger says the same as the effect."""
        rows = self.world.probe.execute(
            "SELECT state FROM cronlock_run WHERE job = %s AND scheduled_at = %s",
            [self.identity, self.slot],
        ).fetchall()
        assert rows == [("done",)] * self.kept()


class Brief(Play):
    """Its lock is soon free, also where nobody hears of it."""

    name = "brief winner"
    job = "brief"
    timeout = "3s"


class OnNewConnection(Play):
    """Its connection is opened by it."""

    name = "winner on a new connection"
    job = "new-connection"

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        engine_of(self.world).dispose()
        wait_until(lambda: self.count(BACKENDS) == 1)  # The farewell is a message too.
        yield
