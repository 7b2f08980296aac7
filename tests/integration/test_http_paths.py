"""The endpoint is found under every spelling of its path, and nowhere else."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from flask import Flask, url_for
from flask.cli import FlaskGroup
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client

from ..support.endpoint import body_of
from ..support.worlds import SECRET, World

GOOD = {"Authorization": f"Bearer {SECRET}"}
SPELLINGS = ["/api/cron/x", "/api/cron/x/", "/api//cron/x", "/api/cron//x", "/api/cron/x//"]


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
@pytest.mark.parametrize("path", SPELLINGS)
def test_every_number_of_slashes_is_served_and_never_redirected(
    served: World, path: str, host: str
) -> None:
    client, before = served.app.test_client(), served.marks

    with_secret = client.post(path, headers={**GOOD, "Host": host})
    without = client.post(path, headers={"Host": host})

    assert (with_secret.status_code, without.status_code) == (200, 401)
    assert body_of(with_secret)["outcome"] == "ran"
    assert "evil.example" not in with_secret.get_data(as_text=True)
    assert body_of(without) == {"error": "Unauthorized"}
    assert served.marks == before + 1


@pytest.mark.parametrize(
    "name",
    [
        "x'); drop table--",
        "x' OR '1'='1",
        "%s%(x)d{0}{job}",
        "..",
        ".",
        "x\0",
        "\0",
        "x\n",
        "x ",
        "X",
        unicodedata.normalize("NFD", "café"),
        "\u202ex",
        "x" * 10_000,
        "$x",
        "-x",
    ],
    ids=lambda name: repr(name)[:24],
)
def test_a_hostile_name_is_an_unknown_job(
    served: World, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    client, path, before = served.app.test_client(), quote(f"/api/cron/{name}"), served.marks

    with_secret, without = client.post(path, headers=GOOD), client.post(path)

    assert with_secret.status_code == 404
    assert body_of(with_secret) == {"error": "Unknown job"}
    assert without.status_code == 401
    assert served.marks == before
    assert served.runs() is not None
    assert all(len(record.getMessage()) < 300 for record in caplog.records)
    assert not any(record.exc_info for record in caplog.records)
    assert "\n" not in "".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    "path",
    ["/cron/x", "/x/api/cron/x", "/api/cronx", "/api/cronx/x"],
)
def test_other_paths_are_left_to_the_app(served: World, path: str) -> None:
    before = served.marks

    response = served.app.test_client().post(path, headers=GOOD)

    assert response.status_code == 404
    assert "Cache-Control" not in response.headers
    assert served.marks == before


@pytest.mark.parametrize(
    "path", ["/api/cron", "/api/cron/", "/api//cron", "/api/cron/x/y", "/api/cron/a%2Fb"]
)
def test_what_is_no_jobs_path_is_an_unknown_job_in_json(served: World, path: str) -> None:
    client = served.app.test_client()

    assert client.post(path).get_json() == {"error": "Unauthorized"}
    response = client.post(path, headers=GOOD)
    assert (response.status_code, response.get_json()) == (404, {"error": "Unknown job"})


def test_bytes_that_are_no_text_are_an_unknown_job(served: World) -> None:
    assert served.app.test_client().post("/api/cron/x%ff%c0", headers=GOOD).status_code == 404


@pytest.mark.parametrize("prefix", ["/cron", "/internal/jobs.v1/~cron", "/tâches"])
def test_another_prefix_is_served_under_every_spelling_too(
    make_world: Callable[..., World], prefix: str
) -> None:
    world = make_world(CRONLOCK_URL_PREFIX=prefix)
    world.cron.job("x")(world.mark)
    client = world.app.test_client()

    for path in (f"{prefix}/x", f"{prefix}/x/", f"{prefix}//x", f"{prefix}/x//"):
        assert body_of(client.post(quote(path), headers=GOOD))["outcome"] == "ran"
    assert client.post("/api/cron/x", headers=GOOD).status_code == 404


@pytest.mark.parametrize("path", SPELLINGS)
def test_an_app_below_a_script_name_is_served(served: World, path: str) -> None:
    mounted = DispatcherMiddleware(Flask("front"), {"/shop": served.app.wsgi_app})

    response = Client(mounted, served.app.response_class).post(f"/shop{path}", headers=GOOD)

    assert response.status_code == 200
    assert body_of(response)["outcome"] == "ran"


@pytest.mark.parametrize("path", SPELLINGS)
def test_an_app_behind_a_proxy_is_served_below_the_proxys_prefix(served: World, path: str) -> None:
    fixed = ProxyFix(served.app.wsgi_app, x_for=1, x_proto=1, x_host=1, x_prefix=1)
    forwarded = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Prefix": "/shop",
    }

    response = Client(fixed, served.app.response_class).post(path, headers={**GOOD, **forwarded})

    assert response.status_code == 200
    assert "evil.example" not in str(response.headers) + response.get_data(as_text=True)


@pytest.mark.parametrize("settings", [{"APPLICATION_ROOT": "/shop"}, {"SERVER_NAME": "shop.test"}])
def test_what_the_app_is_called_from_outside_changes_nothing(
    make_world: Callable[..., World], settings: dict[str, Any]
) -> None:
    world = make_world(**settings)
    world.cron.job("x")(world.mark)

    for path in SPELLINGS:
        response = world.app.test_client().post(path, headers={**GOOD, "Host": "10.0.0.7:8000"})
        assert body_of(response)["outcome"] == "ran"


def test_the_urls_command_knows_the_root_and_the_prefix(make_world: Callable[..., World]) -> None:
    world = make_world(APPLICATION_ROOT="/shop", CRONLOCK_URL_PREFIX="/cron")
    world.cron.job("x")(world.mark)

    result = world.app.test_cli_runner().invoke(
        args=["cron", "urls", "--base", "https://shop.example"]
    )

    assert result.exit_code == 0
    assert "https://shop.example/shop/cron/x\n" in result.output


def test_a_link_to_the_endpoint_is_the_plain_one(served: World) -> None:
    with served.app.test_request_context():
        assert url_for("cronlock.run", job="x") == "/api/cron/x"


def test_the_apps_own_routes_stay_as_they_were(make_world: Callable[..., World]) -> None:
    def add_routes(app: Flask) -> None:
        app.add_url_rule("/<path:path>", "page", lambda path: f"page {path}")
        app.add_url_rule("/files/<path:path>/", "file", lambda path: f"file {path}")

    world = make_world(prepare=add_routes)
    world.cron.job("x")(world.mark)
    client = world.app.test_client()

    assert client.get("/api/other").text == "page api/other"
    assert client.get("/files/a/b/").text == "file a/b"
    assert client.get("/files/a/b").status_code == 308
    for path in SPELLINGS:
        assert body_of(client.post(path, headers=GOOD))["outcome"] == "ran"


def test_the_routes_command_shows_the_endpoint(served: World) -> None:
    result = CliRunner().invoke(FlaskGroup(create_app=lambda: served.app), ["routes"])

    assert result.exit_code == 0
    assert "/api/cron/<job>" in result.output
