"""Workers that die of a run for a request, or after it: it is run once all the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flask_cronlock import signals
from flask_cronlock.queue.errand import run_request
from flask_cronlock.queue.work import GivenUp

from ..support.clocks import logged, state_of
from ..support.databases import Database
from ..support.errands import GOOD, digest_job, put_back, requests, take, told, work
from ..support.outcomes import LONG, value_of
from ..support.wire import Cut, wire_before
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    return make_world(url=route)


def run_after_a_death(world: World) -> None:
    """Work off the oldest row, as one that a worker had in hand before and died with."""
    delivered = take(world)
    world.database.query("UPDATE cronlock_request SET runs = 1 WHERE queue_row = %s", delivered.id)
    run_request(world.app, state_of(world), delivered)


def test_a_row_that_is_delivered_again_after_its_request_has_ended_runs_nothing(
    world: World,
) -> None:
    def fail() -> None:
        raise ValueError("as asked")

    digest_job(world, fail)
    answer = world.post("digest")
    for _ in range(4):
        assert isinstance(work(world), float)
    delivered = take(world)
    with pytest.raises(GivenUp):
        run_request(world.app, state_of(world), delivered)

    run_request(world.app, state_of(world), delivered)
    ended = told(world, answer)
    world.post("digest")
    run_request(world.app, state_of(world), delivered)

    assert (ended["error"], ended["runs"]) == ("Job failed", 5)
    assert requests(world) == [("digest", "queued", 0)]
    assert world.marks == 5


@pytest.mark.parametrize("slots", [LONG, None])
def test_a_run_whose_worker_died_after_its_commit_is_not_made_again(
    world: World, slots: str | None
) -> None:
    def die(_: object, **__: object) -> None:
        raise KeyboardInterrupt

    digest_job(world, lambda: 3, every=slots)
    answer = world.post("digest")
    delivered = take(world)
    with signals.job_succeeded.connected_to(die, world.app), pytest.raises(KeyboardInterrupt):
        run_request(world.app, state_of(world), delivered)
    run_request(world.app, state_of(world), delivered)

    body = told(world, answer)
    assert (body["outcome"], body["processed"], body["runs"]) == ("ran", 3, 2)
    assert body["slot"] == answer.get_json()["slot"]
    assert body["run"] == str(world.database.value("SELECT id FROM cronlock_run"))
    assert {"instance", "duration_ms"} <= body.keys()
    assert ("next_slot" in body) is (slots is not None)
    assert world.marks == 1


def test_a_run_that_was_kept_before_the_hit_is_another_one(world: World) -> None:
    digest_job(world, every=None)
    for _ in range(2):
        world.post("digest")
        assert work(world) == "done"
    world.post("digest")
    run_after_a_death(world)

    assert world.marks == 3


def test_a_run_that_somebody_made_by_hand_is_another_one(world: World) -> None:
    digest_job(world, every=None)
    world.post("digest")
    value_of(world.run("digest"))
    run_after_a_death(world)

    assert world.marks == 2


def test_a_run_for_another_slot_is_another_one(
    make_world: Callable[..., World], route: str
) -> None:
    world = make_world(url=route, CRONLOCK_SLOT_HEADER="X-Slot")
    digest_job(world, every="1h", max_lateness="9h")
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for hours in (1, 2):
        headers = {**GOOD, "X-Slot": (now - timedelta(hours=hours)).isoformat()}
        world.app.test_client().post("/api/cron/digest", headers=headers)
    assert work(world) == "done"
    run_after_a_death(world)

    assert world.marks == len(world.runs()) == 2


def test_a_job_that_brings_its_workers_down_does_so_five_times(world: World) -> None:
    digest_job(world)
    answer = world.post("digest")
    state = state_of(world)
    delivered = take(world)
    request = "UPDATE cronlock_request SET runs = 5"
    world.database.query(f"{request} WHERE queue_row = %s", delivered.id)
    with logged() as log, pytest.raises(GivenUp):
        run_request(world.app, state, delivered)

    body = told(world, answer)
    assert (body["outcome"], body["error"], body["runs"]) == ("failed", "Lock lost", 5)
    assert world.marks == 0
    assert "after run 5: LockLost" in log.of("request_given_up")[0]
    assert "its workers died" in log.of("request_given_up")[0]


def test_a_run_is_counted_before_it_is_made(world: World) -> None:
    seen: list[Any] = []
    digest_job(world, lambda: seen.append(requests(world)))
    world.post("digest")

    assert work(world) == "done"
    assert seen == [[("digest", "queued", 1)]]


@pytest.mark.parametrize("slots", [LONG, None])
@pytest.mark.parametrize(("cut", "times"), [(Cut.BEFORE, 2), (Cut.AFTER, 1)])
def test_a_run_whose_commit_is_in_doubt_is_settled_by_the_next(
    make_world: Callable[..., World], database: Database, slots: str | None, cut: Cut, times: int
) -> None:
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        plans = [lambda: wire.cut_at(b"COMMIT\0", cut, refuse=True), lambda: None]
        digest_job(world, lambda: plans.pop(0)() or 3, every=slots)
        answer = world.post("digest")
        put_back(work(world), 30)
        wire.mend()
        if cut is Cut.AFTER:
            plans.clear()

        assert work(world) == "done"
        body = told(world, answer)

    assert (body["outcome"], body["processed"], body["runs"]) == ("ran", 3, 2)
    assert world.marks == times
    assert len(world.runs()) == 1
