"""Jobs, hits and rows of the ledger while a manual clock is in the place of the database's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from flask_cronlock import Outcome, Ran, Run
from flask_cronlock.testing import ManualClock

from .named import told
from .slots import at
from .worlds import World

Window = tuple[datetime | None, datetime]

START = "2024-06-10T06:59:50Z"
SEVEN = at("2024-06-10T07:00Z")
DAY = timedelta(days=1)


def fail() -> None:
    raise ValueError("no")


class Recorder:
    """A job that writes down, in UTC, what it is handed each time that its code is run."""

    def __init__(
        self, world: World, name: str = "x", work: Callable[[], object] = bool, **how: Any
    ) -> None:
        self.windows: list[Window] = []

        @world.cron.job(name, **how)
        def job(run: Run) -> None:
            before = run.previous_slot
            assert run.slot
            self.windows.append((before and before.astimezone(UTC), run.slot.astimezone(UTC)))
            work()

    @property
    def slots(self) -> list[datetime]:
        return [slot for _, slot in self.windows]

    def assert_seamless(self, begin: str) -> None:
        """Check that the windows follow each other from *begin* on: no hole, no overlap."""
        assert self.windows[0][0] == at(begin)
        for (_, end), (start, _) in pairwise(self.windows):
            assert start == end


def instants(*texts: str) -> list[datetime]:
    return [at(text) for text in texts]


def posts(world: World, clock: ManualClock, *moments: str) -> list[object]:
    """Call the endpoint of job ``x`` at each of *moments*; return what was told."""
    answers = []
    for moment in moments:
        clock.move_to(moment)
        answers.append(told(world.post("x")))
    return answers


def slots_of(outcomes: list[Outcome]) -> list[datetime]:
    """Return the slots of *outcomes*, in UTC; each must have run."""
    assert all(isinstance(outcome, Ran) for outcome in outcomes), outcomes
    return [outcome.slot.astimezone(UTC) for outcome in outcomes if outcome.slot]


def rows(world: World, state: str = "done", job: str = "x") -> list[datetime]:
    """Return the times of the slots in that state, oldest first."""
    found = world.database.query(
        "SELECT scheduled_at FROM cronlock_run WHERE state = %s AND job = %s ORDER BY scheduled_at",
        state,
        job,
    )
    return [row[0].astimezone(UTC) for row in found]


def keys(world: World) -> list[str]:
    return sorted(key for _, key, state in world.runs() if state == "done")


def stamps(world: World) -> set[datetime]:
    """Return every time that any table of the ledger holds, but for the slots' own."""
    found = world.database.query(
        "SELECT unnest(ARRAY[started_at, finished_at]) FROM cronlock_run"
        " UNION SELECT unnest(ARRAY[started_at, finished_at]) FROM cronlock_attempt"
        " UNION SELECT unnest(ARRAY[known_since, pruned_through, paused_at]) FROM cronlock_job"
    )
    return {row[0].astimezone(UTC) for row in found if row[0] is not None}
