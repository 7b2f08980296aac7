"""The endpoint's answers, one by one: status, headers and body."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from ..support.databases import Database
from ..support.endpoint import body_of, job, unreachable
from ..support.sites import BRISK
from ..support.worlds import SECRET, World, bare_world

pytestmark = pytest.mark.shared_database

KNOWN_AFTER_A_CLAIM = {"job", "outcome", "slot", "next_slot", "run", "instance", "duration_ms"}
KNOWN_BEFORE_A_CLAIM = {"job", "outcome", "slot", "next_slot", "instance"}


def test_a_run_is_told_with_what_the_job_returned(world: World) -> None:
    job(world, lambda: {"sent": 3})

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 200
    assert body.keys() == KNOWN_AFTER_A_CLAIM | {"processed"}
    assert (body["job"], body["outcome"], body["processed"]) == ("x", "ran", {"sent": 3})
    slot, next_slot = (datetime.fromisoformat(body[key]) for key in ("slot", "next_slot"))
    assert next_slot - slot == timedelta(days=1)
    assert body["run"] == str(world.database.value("SELECT id FROM cronlock_run"))
    assert body["instance"] == world.database.value("SELECT instance FROM cronlock_run")
    assert slot == world.database.value("SELECT scheduled_at FROM cronlock_run")


def test_a_job_without_a_schedule_has_no_slot(world: World) -> None:
    job(world, every=None)

    body = body_of(world.post("x"))

    assert body["slot"] is None
    assert "next_slot" not in body
    assert body["processed"] is None


def test_a_slot_that_ran_is_told_with_when_and_what_is_next(world: World) -> None:
    job(world)
    ran = body_of(world.post("x"))

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 200
    assert body.keys() == KNOWN_BEFORE_A_CLAIM | {"skipped", "reason", "ran_at"}
    assert (body["outcome"], body["skipped"], body["reason"]) == ("skipped", True, "already ran")
    assert (body["slot"], body["next_slot"]) == (ran["slot"], ran["next_slot"])
    finished = world.database.value("SELECT finished_at FROM cronlock_run")
    assert datetime.fromisoformat(body["ran_at"]) == finished.replace(microsecond=0)
    assert world.marks == 1


def test_hits_of_a_slot_that_come_late_run_nothing(world: World) -> None:
    job(world)

    answers = [world.post("x") for _ in range(4)]

    assert [body_of(answer)["outcome"] for answer in answers] == ["ran"] + ["skipped"] * 3
    assert world.marks == 1


@pytest.mark.parametrize("status", [200, 409])
def test_a_run_in_flight_is_told_with_its_holder(
    make_world: Callable[..., World], status: int
) -> None:
    world = make_world(CRONLOCK_IN_FLIGHT_STATUS=status, CRONLOCK_INSTANCE="web.1")
    begun, go_on = threading.Event(), threading.Event()
    job(world, lambda: begun.set() or go_on.wait(20))
    first: list[Any] = []
    thread = threading.Thread(target=lambda: first.append(world.post("x")))
    thread.start()
    try:
        assert begun.wait(20)
        response = world.post("x")
    finally:
        go_on.set()
        thread.join()

    body = body_of(response)
    assert response.status_code == status
    assert body.keys() == KNOWN_BEFORE_A_CLAIM | {"skipped", "reason", "held_by", "held_since"}
    assert (body["skipped"], body["reason"]) == (True, "already running")
    assert body["held_by"] == body_of(first[0])["instance"]
    assert body["held_by"].startswith("web.1/")
    assert datetime.fromisoformat(body["held_since"]).tzinfo is not None
    assert body_of(first[0])["outcome"] == "ran"
    assert world.marks == 1


def test_a_foreign_holder_of_the_lock_is_told_by_its_name(world: World) -> None:
    job(world)
    with world.database.connect(application_name="another-service") as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('x', 0))")

        body = body_of(world.post("x"))

    assert body["reason"] == "already running"
    assert body["held_by"].startswith("another-service (backend ")


def test_a_paused_job_is_skipped(world: World) -> None:
    job(world)
    world.database.query(
        "INSERT INTO cronlock_job (namespace, job, paused_at) VALUES ('', 'x', now())"
    )

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 200
    assert body.keys() == KNOWN_BEFORE_A_CLAIM | {"skipped", "reason"}
    assert (body["skipped"], body["reason"]) == (True, "paused")
    assert world.marks == 0


def test_where_cron_is_not_enabled_every_job_is_paused_whatever_the_database_does(
    database: Database,
) -> None:
    with unreachable() as url, bare_world(database, url=url, CRONLOCK_ENABLED=False) as world:
        job(world)

        response = world.post("x")

    body = body_of(response)
    assert response.status_code == 200
    assert (body["skipped"], body["reason"]) == (True, "paused")


def test_a_slot_that_is_over_is_too_late(world: World) -> None:
    twelve_hours_off = (datetime.now(UTC) + timedelta(hours=12)).hour
    job(world, every=None, schedule=f"0 {twelve_hours_off} * * *", max_lateness="1m")

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 200
    assert body.keys() == KNOWN_BEFORE_A_CLAIM | {"skipped", "reason"}
    assert (body["skipped"], body["reason"]) == (True, "too late")
    assert world.marks == 0


def fail() -> None:
    raise ValueError("psycopg says: SELECT secrets")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"DEBUG": True},
        {"TESTING": True},
        {"PROPAGATE_EXCEPTIONS": True},
        {"DEBUG": True, "TESTING": True, "PROPAGATE_EXCEPTIONS": True},
    ],
    ids=lambda settings: "+".join(settings).lower() or "production",
)
def test_a_job_that_raised_is_told_by_its_run_alone(
    make_world: Callable[..., World], settings: dict[str, Any]
) -> None:
    world = make_world(**settings)
    job(world, fail)

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 500
    assert body.keys() == KNOWN_AFTER_A_CLAIM | {"error"}
    assert (body["outcome"], body["error"]) == ("failed", "Job failed")
    assert body["run"] == str(world.database.value("SELECT id FROM cronlock_attempt"))


@pytest.mark.parametrize("settings", [{}, {"DEBUG": True, "PROPAGATE_EXCEPTIONS": True}])
def test_an_error_of_the_apps_own_before_a_run_is_told_without_its_text(
    database: Database, caplog: pytest.LogCaptureFixture, settings: dict[str, Any]
) -> None:
    def break_down(*_: Any) -> None:
        raise RuntimeError(f"SELECT {SECRET}")

    with bare_world(database, **settings) as world:
        job(world)
        with world.app.app_context():
            event.listen(world.db.engine, "connect", break_down)

        response = world.post("x")

    assert response.status_code == 500
    assert body_of(response) == {"job": "x", "error": "Internal error"}
    assert "RuntimeError: SELECT [secret]" in caplog.text
    assert SECRET not in caplog.text


def test_a_job_that_left_the_program_has_failed(world: World) -> None:
    job(world, lambda: exit("SELECT 1"))

    response = world.post("x")

    assert (response.status_code, body_of(response)["error"]) == (500, "Job failed")


def test_a_job_whose_time_was_up_is_told_so(world: World) -> None:
    sleep = world.db.text("SELECT pg_sleep(20)")
    job(world, lambda: world.db.session.execute(sleep), timeout=BRISK)

    response = world.post("x")

    body = body_of(response)
    assert response.status_code == 504
    assert body.keys() == KNOWN_AFTER_A_CLAIM | {"error"}
    assert (body["outcome"], body["error"]) == ("failed", "Job timed out")


def test_a_lock_that_was_lost_is_told_so(world: World) -> None:
    end_itself = world.db.text("SELECT pg_terminate_backend(pg_backend_pid())")
    job(world, lambda: world.db.session.execute(end_itself))

    response = world.post("x")

    assert response.status_code == 500
    assert body_of(response)["error"] == "Lock lost"


def test_a_slot_whose_job_sent_a_commit_of_its_own_is_broken(world: World) -> None:
    def commit() -> None:
        world.db.session.connection().connection.driver_connection.execute("COMMIT")

    job(world, commit)

    answers = [world.post("x"), world.post("x")]

    assert [answer.status_code for answer in answers] == [500, 500]
    assert [body_of(answer)["error"] for answer in answers] == ["Lock lost", "Slot broken"]
    assert world.marks == 1


def test_an_unknown_job_is_told_without_its_name(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    response = world.post("no-such-job")

    assert response.status_code == 404
    assert body_of(response) == {"error": "Unknown job"}
    assert "no-such-job" in caplog.text


@pytest.mark.parametrize(
    "value",
    ["\U0001f600" * 9000, "x" * 5_000_000, 10**5000, {1, 2}, b"\xff"],
    ids=["emoji", "long", "number", "set", "bytes"],
)
def test_a_run_is_a_success_and_its_answer_short_whatever_the_job_returns(
    world: World, value: Any
) -> None:
    job(world, lambda: value)

    response = world.post("x")

    assert response.status_code == 200
    assert body_of(response)["outcome"] == "ran"
    assert world.runs()[0][2] == "done"


def test_a_tuple_is_not_read_as_a_status(world: World) -> None:
    job(world, lambda: ("x", 500))

    response = world.post("x")

    assert response.status_code == 200
    assert body_of(response)["processed"] == ["x", 500]


def test_the_longest_names_stay_within_the_limit(make_world: Callable[..., World]) -> None:
    world = make_world(CRONLOCK_INSTANCE="i" * 5000, CRONLOCK_NAMESPACE="n" * 32)
    name = "j" * 63
    job(world, lambda: "x" * 498, name=name)

    assert body_of(world.post(name))["processed"] == "x" * 498
    assert body_of(world.post(name))["reason"] == "already ran"
    assert world.post("j" * 10_000, secret=SECRET).status_code == 404


class BrokenJson:
    """A JSON provider that cannot write anything."""

    def __init__(self, app: Any) -> None: ...

    def dumps(self, *_: Any, **__: Any) -> str:
        raise TypeError("not serialisable")


def test_the_answer_does_not_depend_on_the_apps_own_json(world: World) -> None:
    world.app.json = BrokenJson(world.app)  # type: ignore[assignment]
    job(world)

    assert body_of(world.post("x"))["outcome"] == "ran"
