"""A slot of a job for workers is on the queue once, however many hits there are of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from flask_cronlock.limits import SHORT_TIMEOUT
from flask_cronlock.planning import Plan
from flask_cronlock.transaction import GuardedTransaction

from ..support.clocks import engine_of, logged, state_of
from ..support.errands import (
    ON_THE_QUEUE,
    ROOMY,
    SLOT_HEADER,
    digest_job,
    hit,
    requests,
    rows,
    told,
    work,
)
from ..support.instances import at_once
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    return make_world(url=route, engine_options=ROOMY, CRONLOCK_SLOT_HEADER=SLOT_HEADER)


def test_hits_at_once_put_one_row_on_the_queue_and_get_one_address(world: World) -> None:
    digest_job(world)

    answers = at_once([partial(world.post, "digest")] * 15)

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert rows(world) == ON_THE_QUEUE
    assert requests(world) == [("digest", "queued", 0)]


def test_a_hit_that_waited_for_another_sees_what_that_one_put_on_the_queue(world: World) -> None:
    """What its own statement saw when it began to wait was an empty queue."""
    digest_job(world)
    state = state_of(world)
    plan = Plan(state.jobs.get("digest"), state.config, "world", "http", None, False)
    with (
        ThreadPoolExecutor(1) as pool,
        GuardedTransaction(engine_of(world), SHORT_TIMEOUT, plan.instance) as tx,
    ):
        first, fresh = state.requests.put(tx, plan.make_run(tx.clock), "{}")
        second = pool.submit(world.post, "digest")
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_until(lambda: second.done() or world.database.value(waiting))
        tx.commit()

    assert fresh
    assert second.result().get_json()["request"] == str(first.id)
    assert rows(world) == ON_THE_QUEUE


def test_a_hit_while_it_runs_there_is_told_of_that_run(world: World) -> None:
    inside: list[Any] = []
    digest_job(world, lambda: inside.append(at_once([partial(world.post, "digest")])[0]))
    answer = world.post("digest")

    assert work(world) == "done"

    assert inside[0].status_code == 202
    assert inside[0].headers["Location"] == answer.headers["Location"]
    assert (rows(world), world.marks) == ([], 1)


def test_each_slot_has_a_row_of_its_own(world: World) -> None:
    digest_job(world, every="1h", max_lateness="5h")
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    answers = [hit(world, now - timedelta(hours=hours)) for hours in (1, 2, 1, 2)]

    assert [answer.status_code for answer in answers] == [202] * 4
    assert len(rows(world)) == 2
    assert (work(world), work(world)) == ("done", "done")
    ran = {datetime.fromisoformat(told(world, answer)["slot"]) for answer in answers}
    assert ran == {now - timedelta(hours=1), now - timedelta(hours=2)}


@pytest.mark.parametrize("how", ["DELETE FROM", "UPDATE"])
def test_a_row_that_the_queue_lost_is_put_there_again(world: World, how: str) -> None:
    digest_job(world)
    answer = world.post("digest")
    end = " SET status = 'cancelled'" if how == "UPDATE" else ""
    world.database.query(f"{how} procrastinate_jobs{end}")
    lost = told(world, answer)

    again = world.post("digest")

    assert (lost["state"], "POST" in lost["hint"]) == ("lost", True)
    assert again.headers["Location"] == answer.headers["Location"]
    assert told(world, again)["state"] == "queued"
    assert work(world) == "done"
    assert world.marks == 1


def test_a_job_without_slots_is_on_the_queue_once_at_a_time(world: World) -> None:
    world.cron.job("sync", on="worker")(world.mark)

    first, same = world.post("sync"), world.post("sync")
    assert work(world) == "done"
    second = world.post("sync")

    assert first.headers["Location"] == same.headers["Location"] != second.headers["Location"]
    assert first.get_json()["slot"] is None
    assert (told(world, first)["state"], told(world, second)["state"]) == ("ended", "queued")
    assert work(world) == "done"
    assert world.marks == 2


def test_each_namespace_has_a_queue_and_slots_of_its_own(make_world: Callable[..., World]) -> None:
    worlds = [make_world(CRONLOCK_NAMESPACE=name) for name in ("shop", "blog")]
    for world in worlds:
        digest_job(world)
        assert world.post("digest").status_code == 202

    assert [queue for queue, _, _ in rows(worlds[0])] == ["shop.jobs", "blog.jobs"]
    assert [work(world) for world in worlds] == ["done", "done"]


def test_each_row_that_is_put_on_the_queue_is_logged_once(world: World) -> None:
    digest_job(world)
    with logged() as log:
        for _ in range(3):
            world.post("digest")

    (words,) = log.of("job_queued")
    assert "digest for 20" in words
