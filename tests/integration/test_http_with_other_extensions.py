"""The endpoint next to what else an app has: CSRF protection, rate limits, error pages, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, redirect, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_wtf import CSRFProtect

from ..support.endpoint import body_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

ORDERS = pytest.mark.parametrize("order", ["before", "after"])
SECRET_KEY = {"SECRET_KEY": "for the tokens of forms"}


def world_with(
    make_world: Callable[..., World], order: str, init_app: Callable[[Flask], Any], **config: Any
) -> World:
    """Return a world whose app *init_app* sets up before or after ``cron``, with a page."""
    world = make_world(prepare=init_app if order == "before" else None, **config)
    if order == "after":
        init_app(world.app)
    world.app.add_url_rule("/page", "page", lambda: "page", methods=["GET", "POST"])
    world.cron.job("x")(world.mark)
    return world


@ORDERS
def test_a_post_needs_no_csrf_token_but_the_apps_own_pages_do(
    make_world: Callable[..., World], order: str
) -> None:
    world = world_with(make_world, order, CSRFProtect().init_app, **SECRET_KEY)

    for path in ("/api/cron/x", "/api//cron/x/"):
        assert world.app.test_client().post(path).status_code == 401
    assert body_of(world.post("x"))["outcome"] == "ran"
    assert world.app.test_client().post("/page").status_code == 400


@ORDERS
def test_a_post_counts_against_no_limit_but_the_apps_own_pages_do(
    make_world: Callable[..., World], order: str
) -> None:
    limiter = Limiter(
        get_remote_address,
        default_limits=["1 per hour"],
        application_limits=["2 per hour"],
        storage_uri="memory://",
        headers_enabled=True,
    )
    world = world_with(make_world, order, limiter.init_app)

    answers = [world.post("x") for _ in range(5)]

    assert [body_of(answer)["outcome"] for answer in answers] == ["ran"] * 5
    assert world.app.test_client().post("/api/cron/x").status_code == 401
    pages = [world.app.test_client().get("/page").status_code for _ in range(2)]
    assert pages == [200, 429]


@ORDERS
def test_several_limiters_are_all_left_out(make_world: Callable[..., World], order: str) -> None:
    def init_app(app: Flask) -> None:
        for prefix in ("one", "two"):
            Limiter(
                get_remote_address,
                app=app,
                default_limits=["1 per hour"],
                key_prefix=prefix,
                storage_uri="memory://",
            )

    world = world_with(make_world, order, init_app)

    assert [world.post("x").status_code for _ in range(3)] == [200] * 3


@ORDERS
def test_error_pages_of_the_app_do_not_touch_the_answers(
    make_world: Callable[..., World], order: str
) -> None:
    def init_app(app: Flask) -> None:
        for what in (Exception, 400, 401, 404, 405, 500, 503):
            app.register_error_handler(what, lambda _: ("<html>Sorry!</html>", 200))

    world = world_with(make_world, order, init_app)
    world.cron.job("failing")(lambda: 1 / 0)
    client = world.app.test_client()

    assert client.get("/nowhere").text == "<html>Sorry!</html>"
    answers = [
        world.post("failing"),
        world.post("no-such-job"),
        world.post("x", secret="wrong"),
        client.get("/api/cron/x"),
    ]
    assert [answer.status_code for answer in answers] == [500, 404, 401, 405]
    for answer in answers:
        body_of(answer)


def test_a_login_wall_can_tell_the_endpoint_by_its_blueprint(
    make_world: Callable[..., World],
) -> None:
    def init_app(app: Flask) -> None:
        @app.before_request
        def wall() -> Any:
            return None if request.blueprint == "cronlock" else redirect("/login")

    world = world_with(make_world, "before", init_app)

    assert world.app.test_client().get("/page").status_code == 302
    assert body_of(world.post("x"))["outcome"] == "ran"
