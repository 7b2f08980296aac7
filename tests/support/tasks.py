"""Rows of the queue, and working them off in the place of a worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask_cronlock import Outcome, Run
from flask_cronlock.queue.tally import Tally
from flask_cronlock.queue.work import Delivered, GivenUp, Redeliver, work_off
from flask_cronlock.state import this_state

from .databases import Database
from .outcomes import LONG
from .worlds import World

MOST_DELIVERIES = 30


@dataclass(frozen=True)
class Row:
    """A row of the queue."""

    id: int
    queue: str
    task: str
    args: dict[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        """The arguments of each call."""
        return list(self.args["items"])


class Shared:
    """A world that a module's tests share: one job, ``digest``, and what it is to do."""

    def __init__(self, world: World, **how: Any) -> None:
        self.world, self._body = world, lambda run: None
        world.cron.job("digest", **{"every": LONG, **how})(lambda run: self._body(run))

    def digest(self, body: Callable[[Run], object], **how: Any) -> Outcome:
        """Run the job with *body*."""
        self._body = body
        return self.world.run("digest", **how)


def rows(place: World | Database) -> list[Row]:
    """Return what is committed."""
    database = place.database if isinstance(place, World) else place
    found = database.query(
        "SELECT id, queue_name, task_name, args FROM procrastinate_jobs ORDER BY id"
    )
    return [Row(*row) for row in found]


def deferred(place: World | Database) -> list[dict[str, Any]]:
    """Return the arguments of all calls that are in the queue."""
    return [item for row in rows(place) for item in row.items]


def work(
    world: World, row: Row, attempts: int = 0, stopping: Callable[[], bool] = lambda: False
) -> Tally:
    """Work off *row* as a worker does that was the *attempts*-th before to have it in hand."""
    with world.app.app_context():
        state = this_state()
    task = state.tasks.get(row.task)
    return work_off(world.app, state, task, Delivered(row.id, attempts, row.args), stopping)


def work_to_the_end(world: World, row: Row, attempts: int = 0) -> Tally | GivenUp:
    """Work off *row* again and again, without the waits, until it needs no more."""
    for attempt in range(attempts, attempts + MOST_DELIVERIES):
        try:
            return work(world, row, attempt)
        except Redeliver:
            continue
        except GivenUp as error:
            return error
    raise AssertionError(f"row {row.id} has no end")


def work_all(world: World) -> list[Tally | GivenUp]:
    """Work off all rows, each to its end."""
    return [work_to_the_end(world, row) for row in rows(world)]


def records(place: World | Database, columns: str = "state, attempts, in_doubt") -> list[Any]:
    """Return what is recorded of the items, by key; of one column without tuples."""
    database = place.database if isinstance(place, World) else place
    found = database.query(f"SELECT {columns} FROM cronlock_item ORDER BY key")
    return found if "," in columns else [value for (value,) in found]


def in_a_process(database: Database, *command: object) -> int:
    """Run a command of ``tasks_app`` on *database*; return its exit code, negative if killed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.tasks_app", database.url, *map(str, command)],
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode <= 0, done.stderr
    return done.returncode
