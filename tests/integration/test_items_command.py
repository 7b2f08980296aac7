"""``flask cron items``: what needs somebody's eye, and what somebody says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_cronlock import NotDone
from flask_cronlock.queue.work import GivenUp

from ..support.commands import cron, fails
from ..support.tasks import rows, work
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.fixture
def calls(world: World) -> list[int]:
    """One item is done, one in doubt and one failed; return what the task was called with."""
    calls: list[int] = []

    @world.cron.task(delivery="at_least_once", attempts=1, key="n")
    def send(n: int) -> None:
        calls.append(n)
        if len(calls) <= 3 and n == 1:
            raise TimeoutError("no answer")
        if len(calls) <= 3 and n == 2:
            raise NotDone("refused")

    @world.cron.job
    def fan(run: Any) -> None:
        run.defer_many(send, [{"n": n} for n in range(3)], batch=3)

    world.run("fan")
    [row] = rows(world)
    with pytest.raises(GivenUp):
        work(world, row)
    world.database.query("DELETE FROM procrastinate_jobs")
    return calls


def listed(world: World, *words: str) -> dict[str, dict[str, Any]]:
    result = cron(world, "items", "--json", *words)
    assert result.exit_code == 0, result.output
    return {record["key"].rpartition("/")[2]: record for record in json.loads(result.stdout)}


def test_items_in_doubt_and_failed_ones_are_listed_with_their_errors(
    world: World, calls: list[int]
) -> None:
    found = listed(world)

    assert found.keys() == {"1", "2"}
    about = [(found[n]["state"], found[n]["attempts"], found[n]["error"]) for n in "12"]
    assert about == [("doubt", 1, "TimeoutError: no answer"), ("failed", 1, "NotDone: refused")]
    assert listed(world, "--state", "failed").keys() == {"2"}
    heads, *lines = cron(world, "items").stdout.splitlines()
    assert heads.split() == ["STATE", "TASK", "ATTEMPTS", "SINCE", "KEY", "ERROR"]
    assert len(lines) == 2


def test_without_any_it_says_so(world: World) -> None:
    assert "No item is in doubt" in cron(world, "items").stdout


def test_one_that_is_retried_is_deferred_anew_with_its_own_key(
    world: World, calls: list[int]
) -> None:
    key = listed(world)["1"]["key"]

    result = cron(world, "items", "--retry", key)
    assert result.stdout == "1 deferred anew, 0 settled.\n", result.output
    [row] = rows(world)
    work(world, row)

    assert calls == [0, 1, 2, 1]
    assert listed(world).keys() == {"2"}
    assert world.database.query("SELECT state, attempts FROM cronlock_item ORDER BY key")[1] == (
        "done",
        1,
    )


def test_one_that_is_settled_is_done_and_is_not_called_again(
    world: World, calls: list[int]
) -> None:
    key = listed(world)["1"]["key"]

    result = cron(world, "items", "--settle", key)

    assert result.stdout == "0 deferred anew, 1 settled.\n", result.output
    assert listed(world).keys() == {"2"}
    assert rows(world) == []
    fails(cron(world, "items", "--retry", key), 2, "`flask cron items` lists the keys")


def test_all_that_failed_are_retried_at_once_and_those_in_doubt_only_where_they_are_named(
    world: World, calls: list[int]
) -> None:
    assert cron(world, "items", "--retry-all", "--task", "send").stdout.startswith("1 deferred")
    assert listed(world, "--state", "waiting").keys() == {"2"}

    result = cron(world, "items", "--retry-all", "--state", "doubt", "--state", "failed")
    assert result.stdout.startswith("1 deferred"), result.output
    for row in rows(world):
        work(world, row)

    assert calls[3:] == [2, 1]
    assert listed(world) == {}
    assert cron(world, "items", "--retry-all").stdout.startswith("0 deferred")
    fails(cron(world, "items", "--retry-all", "--task", "x"), 2, "decorate the function")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--task send", "--task goes with --retry-all."),
        ("--retry-all --state waiting", "what is in doubt or failed"),
        ("--retry-all --state failed --state started", "what is in doubt or failed"),
        ("--retry-all --json", "for the list alone"),
        ("--retry KEY --json", "for the list alone"),
        ("--settle KEY --limit 3", "for the list alone"),
        ("--retry KEY --state doubt", "--state goes with the list"),
        ("--settle KEY --state doubt", "--state goes with the list"),
    ],
)
def test_what_would_be_ignored_is_refused(
    world: World, calls: list[int], words: str, told: str
) -> None:
    key = listed(world)["1"]["key"]

    fails(cron(world, "items", *words.replace("KEY", key).split()), 2, told)

    assert listed(world).keys() == {"1", "2"}
    assert rows(world) == []


def test_without_the_queue_none_is_retried_and_the_cure_is_told(
    world: World, calls: list[int]
) -> None:
    function = "ALTER FUNCTION procrastinate_defer_jobs_v1 RENAME TO elsewhere"
    world.database.query(function)
    try:
        result = cron(world, "items", "--retry-all")
    finally:
        world.database.query("ALTER FUNCTION elsewhere RENAME TO procrastinate_defer_jobs_v1")

    fails(result, 1, "run `flask cron init-db`")
    assert "those of the queue" in result.stderr
    assert listed(world).keys() == {"1", "2"}


def test_with_one_key_that_is_wrong_nothing_is_changed(world: World, calls: list[int]) -> None:
    key = listed(world)["1"]["key"]

    result = cron(world, "items", "--retry", key, "--settle", "x")

    fails(result, 2, "`flask cron items` lists")
    assert "deferred" not in result.stderr
    assert listed(world).keys() == {"1", "2"}
    assert rows(world) == []


def test_another_namespace_sees_and_changes_none(world: World, calls: list[int]) -> None:
    key = listed(world)["1"]["key"]
    other = World(world.database, CRONLOCK_NAMESPACE="other")
    try:
        assert listed(other) == {}
        fails(cron(other, "items", "--settle", key), 2, "lists the keys")
    finally:
        other.close()


def test_only_the_newest_are_listed_where_there_are_many(world: World, calls: list[int]) -> None:
    result = cron(world, "items", "--limit", "1")

    assert result.stdout.splitlines()[-1] == "The newest 1; --limit shows more."
    assert len(listed(world, "--limit", "1")) == 1
