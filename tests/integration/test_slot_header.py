"""The header that may name a slot: what is taken in it, whom it is believed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..support.endpoint import body_of, job
from ..support.named import HEADER, post, refuses, told
from ..support.worlds import SECRET, World

pytestmark = pytest.mark.shared_database

ALL_TIME = {"every": "1s", "max_lateness": "20000d"}
"""A job whose slots are all seconds since 1972: it would run for whatever is taken as a time."""
OLDER = "2021-06-10T07:00:00Z"


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(CRONLOCK_SLOT_HEADER=HEADER)


def ran_older(world: World) -> bool:
    return "2021-06-10T07:00Z" in [key for _, key, _ in world.runs()]


@pytest.mark.parametrize(
    "value",
    [
        "2021-06-10T07:00:00Z",
        "2021-06-10t07:00:00z",
        "2021-06-10T07:00:00.0Z",
        "2021-06-10T07:00:00.000000001Z",
        "2021-06-10T07:00:00+00:00",
        "2021-06-10T07:00:00-00:00",
        "2021-06-10T12:45:00+05:45",
        "2021-06-09T19:00:00-12:00",
    ],
)
def test_a_time_is_taken_in_every_form_of_the_standard(world: World, value: str) -> None:
    job(world, **ALL_TIME)

    response = post(world, value)

    assert told(response) == "ran"
    assert response.json["slot"] == "2021-06-10T07:00:00+00:00"
    assert ran_older(world)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "now",
        "1623308400",
        "2021-06-10",
        "2021-06-10T07:00",
        "2021-06-10T07:00:00",
        "2021-06-10T07:00Z",
        "2021-06-10 07:00:00Z",
        " 2021-06-10T07:00:00Z",
        "2021-06-10T07:00:00Z ",
        "2021-06-10T07:00:00 Z",
        "2021-06-10T07:00:00 01:00",
        "2021-06-10T07:00:00+0100",
        "2021-06-10T07:00:00+01",
        "2021-06-10T07:00:00+24:00",
        "2021-06-10T07:00:00+01:60",
        "2021-06-10T07:00:00.Z",
        "2021-06-10T07:00:00,5Z",
        "2021-06-10T24:00:00Z",
        "2021-06-10T07:60:00Z",
        "2021-06-10T23:59:60Z",
        "2021-02-29T07:00:00Z",
        "2021-13-10T07:00:00Z",
        "0000-01-01T00:00:00Z",
        "02021-06-10T07:00:00Z",
        "-2021-06-10T07:00:00Z",
        "20210610T070000Z",
        "2021-W23-4T07:00:00Z",
        "Thu, 10 Jun 2021 07:00:00 GMT",
        '"2021-06-10T07:00:00Z"',
        "2021-06-10T07:00:00Z,2021-06-10T07:00:00Z",
        "2021-06-10T07:00:00Z, 2021-06-11T07:00:00Z",
        "2021-06-10T07:00:00Z\0",
        "2021-06-10T07:00:00\xb2Z",
        "\xb2\xb9\xb2\xb3-06-10T07:00:00Z",
        "\xe9",
        "\xff\xfe",
        "\xc3\xa9" * 1000,
        "2021-06-10T07:00:00." + "0" * 100_000 + "Z",
        "9" * 100_000,
        "x" * 100_000,
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_time_with_an_offset_is_refused(world: World, value: str) -> None:
    job(world, **ALL_TIME)

    refuses(world, post(world, value))
    assert world.marks == 0


@pytest.mark.parametrize(
    "value",
    ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "9999-12-31T00:00:00Z"],
)
@pytest.mark.parametrize("schedule", [{"every": "1d"}, {"every": None, "schedule": "* * * * *"}])
def test_the_ends_of_time_are_no_slots(world: World, value: str, schedule: dict[str, Any]) -> None:
    job(world, max_lateness="20000d", **schedule)

    refuses(world, post(world, value))


def test_a_header_that_comes_twice_is_refused(world: World) -> None:
    job(world, **ALL_TIME)
    headers = [("Authorization", f"Bearer {SECRET}"), (HEADER, OLDER), (HEADER, OLDER)]

    response = world.app.test_client().post("/api/cron/x", headers=headers)

    refuses(world, response)


def test_a_refusal_names_the_header_in_the_log_and_not_what_was_in_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    job(world)

    refuses(world, post(world, SECRET))

    assert f"{HEADER} must be one time such as 2026-10-25T07:00:00+01:00" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("value", ["malformed", "\xe9", OLDER])
def test_the_header_of_a_caller_without_the_secret_is_not_looked_at(
    world: World, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    job(world, **ALL_TIME)

    response = post(world, value, secret="a-wrong-secret-of-some-length")

    assert response.status_code == 401
    assert body_of(response) == {"error": "Unauthorized"}
    assert caplog.text == ""
    unknown = post(world, value, "no-such-job")
    assert (unknown.status_code, told(unknown)) == (404, "Unknown job")


@pytest.mark.parametrize("value", ["malformed", "", OLDER])
def test_unless_it_is_configured_no_header_names_a_slot(
    make_world: Callable[..., World], value: str
) -> None:
    world = make_world()
    job(world, **ALL_TIME)

    assert told(post(world, value)) == "ran"
    assert not ran_older(world)


@pytest.mark.parametrize(
    "place",
    [
        {"query_string": {"slot": OLDER, HEADER: OLDER}},
        {"data": {"slot": OLDER, HEADER: OLDER}},
        {"json": {"slot": OLDER, HEADER: OLDER}},
        {"headers": {"X-Slot": OLDER, "X-Schedule-Time": OLDER, "Date": OLDER}},
        {"headers": {HEADER.replace("-", ""): OLDER, f"X-{HEADER}": OLDER}},
    ],
    ids=lambda place: "-".join(place),
)
def test_a_slot_is_named_in_no_other_place(world: World, place: dict[str, Any]) -> None:
    job(world, **ALL_TIME)
    headers = {"Authorization": f"Bearer {SECRET}"} | place.get("headers", {})

    response = world.app.test_client().post("/api/cron/x", **{**place, "headers": headers})

    assert told(response) == "ran"
    assert not ran_older(world)


@pytest.mark.parametrize("value", ["malformed", OLDER, "9999-12-31T00:00:00Z"])
def test_a_job_without_a_schedule_has_no_slot_to_name(world: World, value: str) -> None:
    job(world, every=None)

    for _ in range(2):
        response = post(world, value)
        assert (told(response), response.json["slot"]) == ("ran", None)


def test_the_constructor_may_name_the_header_in_any_case(make_world: Callable[..., World]) -> None:
    world = make_world(settings={"slot_header": HEADER.lower()})
    job(world)

    refuses(world, post(world, "malformed"))
