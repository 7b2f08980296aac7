"""A worker's errand: what becomes of a request, whatever becomes of the runs for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock.queue.errand import run_request
from flask_cronlock.queue.work import GivenUp
from flask_cronlock.testing import manual_clock

from ..support.bodies import Gate, running
from ..support.clocks import state_of
from ..support.endpoint import unreachable
from ..support.errands import digest_job, put_back, requests, rows, take, told, work
from ..support.outcomes import LONG, reason_of
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    return make_world(url=route)


def fail() -> None:
    raise ValueError("as asked")


def test_a_run_that_fails_is_followed_by_others_ever_later_and_then_given_up(world: World) -> None:
    digest_job(world, fail)
    answer = world.post("digest")

    for seconds in (30, 60, 120, 240):
        put_back(work(world), seconds)
        assert told(world, answer)["state"] == "queued"
    assert work(world) == "given up"

    body = told(world, answer)
    assert (body["state"], body["error"], body["runs"]) == ("ended", "Job failed", 5)
    assert len(world.attempts()) == world.marks == 5


def test_one_of_them_that_runs_is_the_end(world: World) -> None:
    answers = [ValueError("once"), None]

    def once() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    digest_job(world, once)
    answer = world.post("digest")

    assert isinstance(work(world), float)
    assert work(world) == "done"
    assert (told(world, answer)["outcome"], told(world, answer)["runs"]) == ("ran", 2)


def test_a_hit_after_it_was_given_up_begins_anew_at_the_same_address(world: World) -> None:
    digest_job(world, fail)
    answer = world.post("digest")
    while isinstance(work(world), float):
        pass

    again = world.post("digest")

    assert again.headers["Location"] == answer.headers["Location"]
    assert told(world, again)["state"] == "queued"
    assert "error" not in told(world, again)
    put_back(work(world), 30)


def test_a_hit_while_the_worker_ends_it_is_not_lost(world: World) -> None:
    """The request has ended, and its row is still in the worker's hands for a moment."""
    digest_job(world, fail, timeout="60s")
    world.post("digest")
    for _ in range(4):
        assert isinstance(work(world), float)
    delivered = take(world)
    with pytest.raises(GivenUp):
        run_request(world.app, state_of(world), delivered)

    assert world.post("digest").status_code == 202

    states = sorted(state for _, _, state in rows(world))
    assert states == ["doing", "todo"]


def test_what_is_running_elsewhere_is_waited_for(world: World, gate: Gate) -> None:
    digest_job(world, gate.hold)
    answer = world.post("digest")
    with running(world, "digest", gate) as outcome:
        put_back(work(world), 10)
        assert told(world, answer)["state"] == "queued"
        assert requests(world) == [("digest", "queued", 0)]
    assert outcome.result().run_id

    assert work(world) == "done"
    assert told(world, answer)["reason"] == "already ran"
    assert world.marks == 1


def test_a_row_that_comes_too_late_is_not_run(world: World) -> None:
    world.app.testing = True
    digest_job(world, every="1h", max_lateness="10m")
    with manual_clock(world.app, "2026-03-01T07:00:01Z") as clock:
        answer = world.post("digest")
        clock.move_to("2026-03-01T07:11:00Z")
        assert work(world) == "done"

    assert told(world, answer)["reason"] == "too late"
    assert (world.marks, world.runs()) == (0, [])


def test_what_was_paused_before_a_worker_came_to_it_is_hit_anew_afterwards(world: World) -> None:
    digest_job(world)
    answer = world.post("digest")
    pause = "INSERT INTO cronlock_job (namespace, job, paused_at) VALUES ('', 'digest', now())"
    world.database.query(pause)
    assert work(world) == "done"
    assert told(world, answer)["reason"] == "paused"
    world.database.query("UPDATE cronlock_job SET paused_at = NULL")

    assert world.post("digest").headers["Location"] == answer.headers["Location"]
    assert work(world) == "done"
    assert told(world, answer)["outcome"] == "ran"


def test_where_the_database_is_away_the_row_is_put_back(world: World) -> None:
    digest_job(world)
    world.post("digest")
    with unreachable() as url, bare_world(world.database, url=url) as away:
        digest_job(away)
        put_back(work(world, at_work=away), 30)

    assert work(world) == "done"


def test_a_run_that_could_not_be_begun_is_none(world: World) -> None:
    digest_job(world)
    answer = world.post("digest")
    world.database.query("ALTER TABLE cronlock_run RENAME TO elsewhere")
    try:
        put_back(work(world), 30)
    finally:
        world.database.query("ALTER TABLE elsewhere RENAME TO cronlock_run")

    assert requests(world) == [("digest", "queued", 0)]
    assert work(world) == "done"
    assert told(world, answer)["runs"] == 1


@pytest.mark.parametrize("change", ["gone", "other schedule"])
def test_what_this_workers_release_does_not_know_waits_for_one_that_does(
    make_world: Callable[..., World], world: World, change: str
) -> None:
    digest_job(world, every="1h")
    answer = world.post("digest")
    older = make_world()
    if change == "other schedule":
        digest_job(older, every=LONG)

    for _ in range(6):
        put_back(work(world, at_work=older), 30)
    requested = "UPDATE cronlock_request SET requested_at = requested_at - interval '25h'"
    assert requests(world) == [("digest", "queued", 0)]
    world.database.query(requested)
    assert work(world, at_work=older) == "given up"

    error = {"gone": "Unknown job", "other schedule": "Not a slot of this job"}[change]
    assert (told(world, answer)["error"], world.marks) == (error, 0)


def test_a_renamed_job_is_run_for_requests_under_the_old_name(
    make_world: Callable[..., World], world: World
) -> None:
    digest_job(world)
    answer = world.post("digest")
    newer = make_world()
    newer.cron.job("daily", every=LONG, previous_names=["digest"], on="worker")(newer.mark)

    assert newer.post("daily").headers["Location"] == answer.headers["Location"]
    assert work(world, at_work=newer) == "done"
    assert reason_of(newer.run("daily")) == "already ran"
