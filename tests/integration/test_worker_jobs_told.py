"""What is told of a run that a worker was asked for, at the address that the hit was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from flask import Flask, Response
from sqlalchemy import event
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client

from flask_cronlock.queue.errand import run_request

from ..support.clocks import engine_of, state_of
from ..support.endpoint import LONGEST_BODY
from ..support.errands import GOOD, get, take, told, work
from ..support.instances import at_once
from ..support.outcomes import LONG
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

OTHERS = ["POST", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]
POOL_OF_ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}


@pytest.fixture
def world(world: World) -> World:
    world.cron.job("digest", every=LONG, on="worker")(lambda: 3)
    return world


def address_of(world: World, job: str = "digest") -> str:
    return str(world.post(job).headers["Location"])


def test_its_state_is_told_from_the_hit_to_the_end(world: World) -> None:
    answer = world.post("digest")
    seen = [told(world, answer)]
    delivered = take(world)
    seen.append(told(world, answer))
    run_request(world.app, state_of(world), delivered)
    seen.append(told(world, answer))

    assert [body["state"] for body in seen] == ["queued", "running", "ended"]
    assert {body["job"] for body in seen} == {"digest"}
    assert len({body["slot"] for body in seen} | {answer.get_json()["slot"]}) == 1
    assert [body.get("outcome") for body in seen] == [None, None, "ran"]
    assert [body["runs"] for body in seen] == [0, 0, 1]


def test_a_run_that_ends_while_it_is_told_of_is_not_lost(world: World) -> None:
    """What a worker does at its end, it does here as soon as the request was read."""
    answer = world.post("digest")
    delivered = take(world)

    def end() -> None:
        run_request(world.app, state_of(world), delivered)
        world.database.query("DELETE FROM procrastinate_jobs")

    meanwhile = [end]

    def read(*about: Any) -> None:
        if meanwhile and "FROM cronlock_request" in about[2]:
            at_once([meanwhile.pop()])

    event.listen(engine_of(world), "after_cursor_execute", read)
    try:
        seen = told(world, answer)
    finally:
        event.remove(engine_of(world), "after_cursor_execute", read)

    assert (meanwhile, seen["state"]) == ([], "running")
    assert told(world, answer)["state"] == "ended"


def test_who_asks_is_told_when_to_ask_again_as_long_as_it_goes_on(world: World) -> None:
    def again(response: Any) -> str | None:
        return response.headers.get("Retry-After")

    answer = world.post("digest")
    seen = [again(answer), again(get(world, answer.headers["Location"]))]
    delivered = take(world)
    seen.append(again(get(world, answer.headers["Location"])))
    run_request(world.app, state_of(world), delivered)
    seen.append(again(get(world, answer.headers["Location"])))
    world.cron.job("lost", every=LONG, on="worker")(lambda: None)
    answer = world.post("lost")
    world.database.query("DELETE FROM procrastinate_jobs")
    seen.append(again(get(world, answer.headers["Location"])))

    assert seen == ["5", "5", "5", None, None]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("TABLE", "jobs"), ("TYPE", "job_to_defer_v1"), ("FUNCTION", "defer_jobs_v1")],
)
def test_where_the_queue_is_missing_the_answer_says_so(
    world: World, kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    known = address_of(world)
    world.cron.job("other", every=LONG, on="worker")(lambda: None)
    world.database.query(f"ALTER {kind} procrastinate_{name} RENAME TO elsewhere")
    try:
        answers = [world.post("other")]
        if name == "jobs":
            answers.append(get(world, known))
    finally:
        world.database.query(f"ALTER {kind} elsewhere RENAME TO procrastinate_{name}")

    for answer in answers:
        assert (answer.status_code, answer.get_json()["error"]) == (503, "Tables missing")
        assert answer.headers["Retry-After"] == "30"
    assert "those of the queue; where they are there, the search_path" in caplog.text


@pytest.mark.parametrize("how", ["ran", "failed"])
def test_once_ended_it_is_told_as_a_hit_of_a_job_on_the_web_is(world: World, how: str) -> None:
    def body() -> dict[str, str]:
        if how == "failed":
            raise ValueError("as asked")
        return {"to": "Zoë", "secret": "a-secret-for-the-tests-only"}

    world.cron.job("on-web", every=LONG)(body)
    world.cron.job("on-worker", every=LONG, on="worker")(body)
    answer = world.post("on-worker")
    while isinstance(work(world), float):
        pass

    found, on_web = told(world, answer), world.post("on-web").get_json()

    ours = {"request": answer.get_json()["request"], "state": "ended", "runs": found["runs"]}
    once = ("run", "duration_ms", "job")
    assert found.keys() == {*on_web, *ours}
    assert {k: v for k, v in found.items() if k not in (*once, *ours)} == {
        k: v for k, v in on_web.items() if k not in once
    }
    assert "a-secret" not in str(found)
    assert found["runs"] == (1 if how == "ran" else 5)


def test_without_the_secret_nothing_is_told_not_even_what_there_is(world: World) -> None:
    known = address_of(world)
    unknown = known.replace(known[-36:], str(UUID(int=7)))

    for path in (known, unknown, "/api/cron/-/runs/x"):
        for secret in ("", "Bearer wrong"):
            response = get(world, path, Authorization=secret)
            assert (response.status_code, response.get_json()) == (401, {"error": "Unauthorized"})
            assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("name", ["x", str(UUID(int=7)), "%00", "x" * 5000, "' OR '1'='1"])
def test_a_run_that_nobody_asked_for_is_unknown(world: World, name: str) -> None:
    response = get(world, f"/api/cron/-/runs/{name}")

    assert (response.status_code, response.get_json()) == (404, {"error": "Unknown run"})
    assert response.headers["Cache-Control"] == "no-store"


def test_another_apps_run_is_unknown(make_world: Callable[..., World], world: World) -> None:
    other = make_world(CRONLOCK_NAMESPACE="other")

    assert get(other, address_of(world)).status_code == 404


@pytest.mark.parametrize("method", OTHERS)
def test_it_is_only_asked_for_by_get(world: World, method: str) -> None:
    for headers in (GOOD, {}):
        response = world.app.test_client().open(address_of(world), method=method, headers=headers)

        assert response.status_code == 405
        assert response.headers["Allow"] == "GET"
        assert method == "HEAD" or response.get_json() == {"error": "Use GET"}


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}//", "/api//cron//-//runs//{id}//"])
def test_no_spelling_of_it_is_redirected(world: World, spelling: str) -> None:
    path = address_of(world)

    response = get(world, spelling.format(path, id=path[-36:]))

    assert (response.status_code, response.get_json()["state"]) == (200, "queued")


def test_its_address_is_below_the_apps_root_and_never_on_the_requests_host(world: World) -> None:
    headers = {**GOOD, "Host": "evil.example", "X-Forwarded-Prefix": "//evil.example/a b"}
    mounted = DispatcherMiddleware(Flask("front"), {"/shop": world.app.wsgi_app})
    fixed = ProxyFix(world.app.wsgi_app, x_prefix=1)

    below = Client(mounted, Response).post("/shop/api/cron/digest", headers=headers)
    behind = Client(fixed, Response).post("/api/cron/digest", headers=headers)

    assert below.headers["Location"].startswith("/shop/api/cron/-/runs/")
    assert behind.headers["Location"].startswith("/evil.example/a%20b/api/cron/-/runs/")
    assert Client(mounted, Response).get(below.headers["Location"], headers=GOOD).status_code == 200


def test_its_address_can_be_asked_for_under_any_prefix(make_world: Callable[..., World]) -> None:
    world = make_world(CRONLOCK_URL_PREFIX="/tâches")
    world.cron.job("digest", every=LONG, on="worker")(lambda: 3)

    answer = world.app.test_client().post("/tâches/digest", headers=GOOD)

    assert answer.headers["Location"].startswith("/t%C3%A2ches/-/runs/")
    assert told(world, answer)["state"] == "queued"


def test_one_connection_is_enough(make_world: Callable[..., World]) -> None:
    world = make_world(engine_options=POOL_OF_ONE)
    world.cron.job("digest", every=LONG, on="worker")(lambda: 3)
    world.app.before_request(lambda: world.db.session.execute(world.db.text("SELECT 1")) and None)

    answer = world.post("digest")

    assert told(world, answer)["state"] == "queued"
    assert work(world) == "done"
    assert told(world, answer)["outcome"] == "ran"


def test_the_longest_value_fits(world: World) -> None:
    world.cron.job("long", every=LONG, on="worker")(lambda: "é" * 5000)
    answer = world.post("long")
    work(world)

    text: Any = get(world, answer.headers["Location"]).data
    assert len(text) < LONGEST_BODY
