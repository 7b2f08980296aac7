"""A job under ``on=\"worker\"``: a hit claims nothing, and asks a worker for what is to be run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flask_cronlock import Ran
from flask_cronlock.testing import manual_clock

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
from ..support.outcomes import value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def world(make_world: Callable[..., World], route: str) -> World:
    return make_world(url=route, engine_options=ROOMY, CRONLOCK_SLOT_HEADER=SLOT_HEADER)


def pause(world: World) -> None:
    columns = "INSERT INTO cronlock_job (namespace, job, paused_at)"
    world.database.query(f"{columns} VALUES ('', 'digest', now())")


def test_a_hit_is_answered_before_anything_is_claimed_or_done(world: World) -> None:
    digest_job(world)

    answer = world.post("digest")

    body = answer.get_json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/cron/-/runs/{body['request']}"
    assert answer.headers["Cache-Control"] == "no-store"
    assert (body["job"], body["outcome"]) == ("digest", "queued")
    assert {"slot", "next_slot", "instance"} <= body.keys()
    assert rows(world) == ON_THE_QUEUE
    assert (world.marks, world.runs()) == (0, [])
    assert world.database.advisory_locks() == 0


def test_the_worker_runs_it_by_the_same_claim_as_any_hit(world: World) -> None:
    digest_job(world, lambda: {"mails": 3})
    answer = world.post("digest")

    assert work(world) == "done"

    assert told(world, answer)["processed"] == {"mails": 3}
    asked = "SELECT trigger, forced, state FROM cronlock_run"
    assert world.database.query(asked) == [("queue", False, "done")]
    again = world.post("digest")
    assert (again.status_code, again.get_json()["reason"]) == (200, "already ran")
    assert (rows(world), world.marks) == ([], 1)


def test_what_would_not_be_run_is_not_put_on_the_queue(world: World) -> None:
    digest_job(world, every="1h")
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    too_late = hit(world, now - timedelta(hours=3))
    off_the_grid = hit(world, now - timedelta(minutes=7))
    pause(world)
    paused = world.post("digest")

    assert (too_late.status_code, too_late.get_json()["reason"]) == (200, "too late")
    assert (paused.status_code, paused.get_json()["reason"]) == (200, "paused")
    assert (off_the_grid.status_code, off_the_grid.get_json()["error"]) == (
        400,
        "Not a slot of this job",
    )
    assert (rows(world), requests(world)) == ([], [])


def test_a_slot_that_a_raw_commit_broke_is_not_put_on_the_queue(world: World) -> None:
    def commit() -> None:
        driver: Any = world.db.session.connection().connection.driver_connection
        driver.execute("COMMIT")

    digest_job(world, commit)
    answer = world.post("digest")
    assert isinstance(work(world), float)
    assert work(world) == "given up"

    again = world.post("digest")

    assert told(world, answer)["error"] == "Slot broken"
    assert (again.status_code, again.get_json()["error"]) == (500, "Slot broken")
    assert world.marks == 1


def test_an_app_that_is_switched_off_asks_no_worker(make_world: Callable[..., World]) -> None:
    world = make_world(CRONLOCK_ENABLED=False)
    digest_job(world)

    assert world.post("digest").get_json()["reason"] == "paused"
    assert rows(world) == []


def test_a_hit_that_comes_early_is_for_the_slot_that_begins(
    make_world: Callable[..., World],
) -> None:
    world, strict = make_world(), make_world(CRONLOCK_EARLY=0)
    for each in (world, strict):
        digest_job(each, every="1h")
        each.app.testing = True
    with (
        manual_clock(world.app, "2026-03-01T06:59:57Z") as clock,
        manual_clock(strict.app, "2026-03-01T06:59:58Z") as strict_clock,
    ):
        answer = world.post("digest")
        refused = work(world, at_work=strict)
        strict_clock.move_to(clock.move_to("2026-03-01T07:00:01Z"))
        assert work(world, at_work=strict) == "done"

    assert refused not in ("done", "given up")
    assert answer.get_json()["slot"] == told(world, answer)["slot"] == "2026-03-01T07:00:00+00:00"
    assert told(world, answer)["outcome"] == "ran"


def test_called_in_python_it_runs_there_and_then(world: World) -> None:
    digest_job(world, lambda: 3)

    assert value_of(world.run("digest")) == 3
    assert isinstance(world.run("digest", force=True), Ran)
    result = world.app.test_cli_runner().invoke(args=["cron", "run", "digest"])

    assert "already ran" in result.output
    assert (rows(world), world.marks) == ([], 2)


def test_a_run_inside_a_run_is_refused(world: World) -> None:
    digest_job(world)
    world.cron.job("outer")(lambda: world.post("digest").get_json())

    assert value_of(world.run("outer"))["error"] == "Nested run"
    assert rows(world) == []


def test_a_database_without_a_queue_is_told_of_and_nothing_is_kept(world: World) -> None:
    digest_job(world)
    world.database.query("ALTER TABLE procrastinate_jobs RENAME TO elsewhere")
    try:
        answer = world.post("digest")
    finally:
        world.database.query("ALTER TABLE elsewhere RENAME TO procrastinate_jobs")

    assert (answer.status_code, answer.get_json()["error"]) == (503, "Tables missing")
    assert requests(world) == []
