"""``flask cron list --at``: the next five slots of every job, from any moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from ..support.commands import cron
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

AUTUMN_NIGHT = "2026-10-25T00:00Z"
HEADS = ["JOB", "SCHEDULE", "CATCH UP", "TIMEOUT", "NEWEST SLOT", "NEXT SLOTS"]


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world(CRONLOCK_TIMEZONE="Europe/Berlin")
    world.cron.job("daily", schedule="30 2 * * *", catch_up="all", max_catch_up=7)(lambda: None)
    world.cron.job("half-hourly", schedule="*/30 * * * *", catch_up="none")(lambda: None)
    world.cron.job("odd", schedule="*/50 * 13 * 5", tz="UTC")(lambda: None)
    world.cron.job("warm-cache")(lambda: None)
    return world


def columns_of(text: str) -> dict[str, list[list[str]]]:
    """Return the lines of the table by job, each cut at the heads' places."""
    heads, *lines = text.splitlines()
    assert [heads.index(head) for head in HEADS] == sorted(heads.index(head) for head in HEADS)
    places = [*(heads.index(head) for head in HEADS), None]
    jobs: dict[str, list[list[str]]] = {}
    name = ""
    for line in lines:
        if line.startswith(("daily:", "half-hourly:", "odd:")):
            break
        cells = [line[a:b].strip() for a, b in pairwise(places)]
        name = cells[0] or name
        jobs.setdefault(name, []).append(cells[1:])
    return jobs


def test_a_daily_slot_of_the_autumn_night_comes_once_and_in_local_time(world: World) -> None:
    first, *more = columns_of(cron(world, "list", "--at", AUTUMN_NIGHT).stdout)["daily"]

    assert first == [
        "30 2 * * * Europe/Berlin",
        "all, at most 7",
        "1m",
        "2026-10-24T02:30:00+02:00",
        "2026-10-25T02:30:00+02:00",
    ]
    assert more == [["", "", "", "", f"2026-10-{day}T02:30:00+01:00"] for day in range(26, 30)]


def test_slots_by_elapsed_time_show_both_passes_of_the_repeated_hour(world: World) -> None:
    lines = columns_of(cron(world, "list", "--at", AUTUMN_NIGHT).stdout)["half-hourly"]

    assert lines[0][1] == "none"
    assert lines[0][3] == "2026-10-25T02:00:00+02:00"
    assert [line[-1] for line in lines] == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:00:00+01:00",
        "2026-10-25T03:30:00+01:00",
    ]


def test_the_moment_may_be_given_in_any_zone(world: World) -> None:
    here = cron(world, "list", "--at", "2026-10-25T02:00:00+02:00")
    assert here.exit_code == 0
    assert here.stdout == cron(world, "list", "--at", AUTUMN_NIGHT).stdout
    assert here.stdout != cron(world, "list", "--at", "2026-10-25T02:00:00+01:00").stdout


def test_what_an_expression_does_not_mean_is_told_below(world: World) -> None:
    told = cron(world, "list", "--at", AUTUMN_NIGHT).stdout

    assert "odd: */50 starts again every hour: it is not every 50 minutes" in told
    assert "odd: day-of-month and day-of-week are both set: a day that matches either" in told
    assert "daily:" not in told


def test_a_job_without_a_schedule_has_one_line_and_no_slots(world: World) -> None:
    [line] = columns_of(cron(world, "list", "--at", AUTUMN_NIGHT).stdout)["warm-cache"]

    assert line == ["none: kept from overlapping only", "-", "1m", "-", "-"]


def test_without_a_moment_it_is_one_line_a_job(world: World) -> None:
    told = cron(world, "list").stdout

    assert "NEXT SLOT\n" in told
    jobs = [line.split()[0] for line in told.splitlines()[1:] if not line.startswith("odd:")]
    assert jobs == ["daily", "half-hourly", "odd", "warm-cache"]


def test_as_json_it_has_the_same(world: World) -> None:
    result = cron(world, "list", "--at", AUTUMN_NIGHT, "--json")

    records = {record["job"]: record for record in json.loads(result.stdout)}

    daily, warm_cache = records["daily"], records["warm-cache"]
    assert (daily["catch_up"], daily["max_catch_up"]) == ("all", 7)
    assert daily["next_slot"] == daily["upcoming"][0] == "2026-10-25T02:30:00+02:00"
    assert len(daily["upcoming"]) == 5
    assert (records["odd"]["catch_up"], records["odd"]["max_catch_up"]) == ("latest", None)
    assert len(records["odd"]["hints"]) >= 2
    assert (warm_cache["catch_up"], warm_cache["upcoming"]) == (None, [])
