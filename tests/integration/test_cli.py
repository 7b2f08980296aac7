"""``flask cron list | run | secret | urls``, and what the commands say when they cannot go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from ..support.bodies import Gate, running
from ..support.commands import cron, fails
from ..support.databases import Database, Server, fresh_database
from ..support.worlds import SECRET, World, bare_world

pytestmark = pytest.mark.shared_database

NO_SERVER = "postgresql+psycopg://postgres@127.0.0.1:1/none"


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return with_jobs(make_world())


def with_jobs(world: World) -> World:
    @world.cron.job("digest", schedule="0 7 * * *", tz="Europe/Berlin", timeout="90s")
    def digest() -> int:
        world.mark()
        return 3

    @world.cron.job("warm-cache")
    def warm_cache() -> None:
        world.mark()

    @world.cron.job("failing", every="15m")
    def failing() -> None:
        raise ValueError(f"the secret is {SECRET}")

    return world


@pytest.fixture
def unreachable(database: Database) -> Iterator[World]:
    with bare_world(database, url=NO_SERVER) as world:
        yield with_jobs(world)


def test_list_shows_schedule_catch_up_timeout_and_next_slot(world: World) -> None:
    result = cron(world, "list")
    assert result.exit_code == 0
    heads, digest, failing, warm_cache = result.stdout.splitlines()
    assert heads.split("  ")[0] == "JOB"
    assert "CATCH UP  TIMEOUT  NEWEST SLOT" in heads
    assert heads.endswith("NEXT SLOT")
    assert "0 7 * * * Europe/Berlin           latest    90s      20" in digest
    newest, coming = (datetime.fromisoformat(word) for word in digest.split()[-2:])
    assert newest <= datetime.now(UTC) < coming
    assert "every 15m" in failing
    assert "none: kept from overlapping only  -         1m       -" in warm_cache


def test_list_as_json_has_the_slots_to_come(world: World) -> None:
    records = {r["job"]: r for r in json.loads(cron(world, "list", "--json").stdout)}
    assert records["warm-cache"]["schedule"] is None
    assert records["warm-cache"]["next_slot"] is None
    upcoming = [datetime.fromisoformat(slot) for slot in records["failing"]["upcoming"]]
    assert upcoming[0] > datetime.now(UTC)
    assert {b - a for a, b in pairwise(upcoming)} == {timedelta(minutes=15)}


def test_list_of_no_jobs_says_how_to_have_some(database: Database) -> None:
    with bare_world(database) as world:
        result = cron(world, "list")
    assert result.exit_code == 0
    assert "@cron.job" in result.stdout


def test_list_needs_no_database(unreachable: World) -> None:
    assert cron(unreachable, "list").exit_code == 0


def test_run_ran_and_then_skipped(world: World) -> None:
    first, second = cron(world, "run", "digest"), cron(world, "run", "digest")
    assert first.exit_code == second.exit_code == 0
    assert first.stdout.startswith("digest ran: 3 (slot ")
    assert second.stdout.startswith("digest skipped, already ran (slot ")
    assert "next slot" in second.stdout
    assert world.marks == 1
    assert world.database.value("SELECT trigger FROM cronlock_run") == "cli"


def test_run_as_json_says_what_the_endpoint_says(world: World) -> None:
    said = json.loads(cron(world, "run", "digest", "--json").stdout)
    assert (said["job"], said["outcome"], said["processed"]) == ("digest", "ran", 3)
    again = json.loads(cron(world, "run", "digest", "--json").stdout)
    assert (again["outcome"], again["reason"]) == ("skipped", "already ran")
    assert again["slot"] == said["slot"]


def test_run_of_a_failing_job_exits_with_1_and_shows_the_error_without_secrets(
    world: World,
) -> None:
    for words in (["run", "failing"], ["run", "failing", "--json"]):
        result = cron(world, *words)
        assert result.exit_code == 1
        assert "ValueError: the secret is [secret]" in result.stdout
        assert SECRET not in result.output


def test_run_of_a_job_that_is_running_elsewhere_names_the_holder(world: World, gate: Gate) -> None:
    world.cron.job("held")(gate.hold)
    with running(world, "held", gate):
        result = cron(world, "run", "held")
    assert result.exit_code == 0
    assert "skipped, already running (held by " in result.stdout


def test_run_with_force_runs_again(world: World) -> None:
    cron(world, "run", "digest")
    assert cron(world, "run", "digest", "--force").exit_code == 0
    assert world.marks == 2


def test_run_with_a_slot_runs_that_slot(world: World) -> None:
    newest = datetime.fromisoformat(
        json.loads(cron(world, "run", "digest", "--json").stdout)["slot"]
    )
    same = cron(world, "run", "digest", "--slot", newest.astimezone(UTC).isoformat())
    assert "already ran" in same.stdout
    older = cron(world, "run", "digest", "--slot", (newest - timedelta(days=8)).isoformat())
    assert older.exit_code == 0
    assert "skipped, too late" in older.stdout


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["run", "no-such-job"], "`flask cron list` shows the jobs"),
        (["run", "digest", "--slot", "2020-01-01T07:01:00+01:00"], "its newest slot is"),
        (["run", "digest", "--slot", "2020-01-01T07:00:00"], "add Z for UTC"),
        (["run", "digest", "--slot", "monday"], "write it as 2026-10-25T07:00:00+01:00"),
        (["run", "warm-cache", "--slot", "2020-01-01T07:00:00Z"], "has no schedule"),
        (["run"], "Missing argument"),
        (["list", "--at", "monday"], "write it as"),
        (["list", "--at", "2026-10-25T00:00"], "add Z for UTC"),
        (["list", "--at", "9999-01-01T00:00Z"], "too far ahead"),
    ],
)
def test_a_wrong_use_exits_with_2_and_names_the_cure(
    world: World, words: list[str], cure: str
) -> None:
    fails(cron(world, *words), 2, cure)
    assert world.marks == 0


@pytest.mark.parametrize("words", [["run", "digest"], ["holders"], ["init-db"]])
def test_a_database_that_is_down_exits_with_1_and_says_what_the_driver_said(
    unreachable: World, words: list[str]
) -> None:
    result = cron(unreachable, *words)
    fails(result, 1, "The database cannot be reached")
    assert "port 1 failed" in result.stderr


def test_run_without_tables_names_the_command_that_makes_them(postgres: Server) -> None:
    with fresh_database(postgres) as database, bare_world(database) as bare:
        fails(cron(with_jobs(bare), "run", "digest"), 1, "flask cron init-db")


def test_secret_prints_a_new_one_that_the_configuration_takes(
    world: World, make_world: Callable[..., World]
) -> None:
    one, other = (cron(world, "secret").stdout.strip() for _ in range(2))
    assert one != other
    fresh = with_jobs(make_world(CRONLOCK_SECRET=one))
    assert fresh.post("warm-cache", secret=one).status_code == 200
    assert fresh.post("warm-cache", secret=other).status_code == 401


def test_urls_are_those_that_the_app_serves(make_world: Callable[..., World]) -> None:
    world = with_jobs(make_world(APPLICATION_ROOT="/shop/", CRONLOCK_URL_PREFIX="/jobs"))
    result = cron(world, "urls", "--base", "https://example.org/")
    assert result.exit_code == 0
    assert result.stdout.count("curl --fail-with-body -X POST") == 3
    assert '-H "Authorization: Bearer $CRON_SECRET"' in result.stdout
    urls: dict[str, Any] = json.loads(
        cron(world, "urls", "--base", "https://example.org", "--json").stdout
    )
    assert urls["warm-cache"] == "https://example.org/shop/jobs/warm-cache"
    assert all(url in result.stdout for url in urls.values())
    response = world.app.test_client().post(
        "/jobs/warm-cache",
        base_url="https://example.org/shop",
        headers={"Authorization": f"Bearer {SECRET}"},
    )
    assert response.status_code == 200
