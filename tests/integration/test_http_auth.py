"""Who may run jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from ..support.databases import Database
from ..support.endpoint import body_of
from ..support.worlds import SECRET, World

pytestmark = pytest.mark.shared_database

NEW, OLD = "the-new-secret-of-2026", "the-old-secret-of-2025"


def post(world: World, header: str | None, path: str = "/api/cron/x", **how: Any) -> Any:
    headers = {} if header is None else {"Authorization": header}
    return world.app.test_client().post(path, headers=headers, **how)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong-secret-of-some-length",
        f"Bearer  {SECRET}",
        f"Bearer\t{SECRET}",
        f"Bearer {SECRET}x",
        f"Bearer {SECRET}\0",
        f"Bearer {SECRET},Bearer {SECRET}",
        f"Basic {SECRET}",
        f"Token {SECRET}",
        SECRET,
        "Bearer \xe9",
        "Bearer " + "x" * 100_000,
        "\0",
    ],
    ids=lambda header: repr(header)[:30],
)
def test_a_wrong_header_is_unauthorized_alike_for_known_and_unknown_jobs(
    served: World, caplog: pytest.LogCaptureFixture, header: str | None
) -> None:
    before = served.marks

    known = post(served, header)
    unknown = post(served, header, "/api/cron/no-such-job")

    for response in (known, unknown):
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert body_of(response) == {"error": "Unauthorized"}
    assert known.data == unknown.data
    assert list(known.headers) == list(unknown.headers)
    assert served.marks == before
    assert caplog.text == ""


def test_an_unknown_job_is_told_to_those_who_have_the_secret(served: World) -> None:
    assert post(served, f"Bearer {SECRET}", "/api/cron/no-such-job").status_code == 404


def test_the_scheme_may_be_written_in_any_case(served: World) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert body_of(post(served, f"{scheme} {SECRET}"))["outcome"] == "ran"


@pytest.mark.parametrize(
    "how",
    [
        {"query_string": {"secret": SECRET}},
        {"query_string": {"token": SECRET, "access_token": SECRET}},
        {"query_string": {"Authorization": f"Bearer {SECRET}"}},
        {"data": {"secret": SECRET, "token": SECRET}},
        {"data": {"access_token": SECRET}},
        {"json": {"secret": SECRET, "Authorization": f"Bearer {SECRET}"}},
        {"auth": ("cron", SECRET)},
        {"auth": (SECRET, "")},
    ],
    ids=lambda how: "-".join(how),
)
def test_a_secret_is_taken_from_no_other_place_than_the_header(
    served: World, how: dict[str, Any]
) -> None:
    before = served.marks

    response = post(served, None, **how)

    assert response.status_code == 401
    assert served.marks == before


def test_while_secrets_are_rotated_both_are_taken_and_then_the_old_one_is_not(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    during, after = make_world(CRONLOCK_SECRET=[NEW, OLD]), make_world(CRONLOCK_SECRET=[NEW])
    for world in (during, after):
        world.cron.job("x")(world.mark)

    with caplog.at_level(logging.DEBUG):
        answers = [during.post("x", secret=secret).status_code for secret in (NEW, OLD)]

    assert answers == [200, 200]
    assert "number 1 matched" in caplog.text
    assert "number 2 matched" in caplog.text
    assert NEW not in caplog.text
    assert OLD not in caplog.text
    assert after.post("x", secret=NEW).status_code == 200
    assert after.post("x", secret=OLD).status_code == 401


def test_the_secret_of_the_environment_is_taken_where_none_is_configured(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRON_SECRET", OLD)
    fallback, configured = make_world(CRONLOCK_SECRET=None), make_world(CRONLOCK_SECRET=NEW)
    for world in (fallback, configured):
        world.cron.job("x")(world.mark)

    assert fallback.post("x", secret=OLD).status_code == 200
    assert configured.post("x", secret=NEW).status_code == 200
    assert configured.post("x", secret=OLD).status_code == 401


def test_a_secret_given_to_the_constructor_wins(make_world: Callable[..., World]) -> None:
    world = make_world(settings={"secret": NEW}, CRONLOCK_SECRET=OLD)
    world.cron.job("x")(world.mark)

    assert world.post("x", secret=NEW).status_code == 200
    assert world.post("x", secret=OLD).status_code == 401
    assert NEW not in repr(world.cron)


def test_each_app_has_its_own_secret(database: Database, make_world: Callable[..., World]) -> None:
    one, two = make_world(CRONLOCK_SECRET=NEW), make_world(CRONLOCK_SECRET=OLD)
    for world in (one, two):
        world.cron.job("x")(world.mark)

    assert one.post("x", secret=NEW).status_code == 200
    assert two.post("x", secret=NEW).status_code == 401
    assert two.post("x", secret=OLD).status_code == 200
