"""Runs that workers are asked for: the queue's rows, and a worker's errands in this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from flask_cronlock.queue.errand import run_request
from flask_cronlock.queue.work import Delivered, GivenUp, Redeliver

from .clocks import state_of
from .outcomes import LONG
from .worlds import SECRET, World

SLOT_HEADER = "X-Slot"
ON_THE_QUEUE = [("cronlock.jobs", "cronlock-run", "todo")]
ROOMY = {"pool_size": 5, "max_overflow": 20, "connect_args": {"prepare_threshold": None}}
"""An engine for many hits at once, behind a pooler too."""
GOOD = {"Authorization": f"Bearer {SECRET}"}


def digest_job(world: World, work: Callable[[], Any] = lambda: None, **how: Any) -> None:
    """Register the job ``digest`` for workers, by default with one long slot."""

    def digest() -> Any:
        world.mark()
        return work()

    world.cron.job("digest", on="worker", **({"every": LONG} | how))(digest)


def hit(world: World, moment: datetime) -> Any:
    """Hit ``digest`` for the slot of *moment*."""
    headers = {**GOOD, SLOT_HEADER: moment.isoformat()}
    return world.app.test_client().post("/api/cron/digest", headers=headers)


def rows(world: World) -> list[tuple[Any, ...]]:
    """Return queue, task and state of each row of the queue."""
    return world.database.query(
        "SELECT queue_name, task_name, status::text FROM procrastinate_jobs ORDER BY id"
    )


def requests(world: World) -> list[tuple[Any, ...]]:
    """Return job, state and number of runs of each request."""
    return world.database.query(
        "SELECT job, state, runs FROM cronlock_request ORDER BY requested_at"
    )


def get(world: World, path: str, **headers: str) -> Any:
    """Ask what became of a run, by its own path or by an answer's."""
    return world.app.test_client().get(path, headers=headers or GOOD)


def told(world: World, answer: Any) -> dict[str, Any]:
    """Return what is told of the run that *answer* says a worker was asked for."""
    assert answer.status_code == 202, answer.get_data(as_text=True)
    response = get(world, answer.headers["Location"])
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    body = response.get_json()
    assert isinstance(body, dict)
    return body


def take(world: World) -> Delivered:
    """Take the oldest row that waits into hand, whenever it is due."""
    ((number, args),) = world.database.query(
        "UPDATE procrastinate_jobs SET status = 'doing' WHERE id = "
        "(SELECT min(id) FROM procrastinate_jobs WHERE status = 'todo') RETURNING id, args"
    )
    return Delivered(number, 0, args)


def work(world: World, at_work: World | None = None) -> str | float:
    """Work off one row as a worker, of the app of *at_work*, does.

    Return ``done``, ``given up``, or in how many seconds it is due again.
    """
    worker = at_work or world
    delivered = take(world)
    try:
        run_request(worker.app, state_of(worker), delivered)
    except GivenUp:
        return _left(
            world, delivered, "UPDATE procrastinate_jobs SET status = 'failed'", "given up"
        )
    except Redeliver as again:
        wait = again.wait.total_seconds() if again.wait else 0.0
        return _left(world, delivered, "UPDATE procrastinate_jobs SET status = 'todo'", wait)
    return _left(world, delivered, "DELETE FROM procrastinate_jobs", "done")


def _left(world: World, row: Delivered, change: str, what: str | float) -> str | float:
    world.database.query(f"{change} WHERE id = %s", row.id)
    return what


def put_back(outcome: object, seconds: float) -> None:
    """Check that a row was put back for so many *seconds*."""
    assert isinstance(outcome, float), outcome
    assert outcome == seconds
