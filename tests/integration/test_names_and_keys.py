"""Lock keys: the published ones, over the whole range, and what happens where two meet."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from flask_cronlock import Reason, Skipped

from ..support.databases import Database
from ..support.outcomes import LONG, elsewhere, reason_of, value_of
from ..support.worlds import World

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
TAKE = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"


@pytest.fixture
def database(emptied_database: Database) -> Database:
    return emptied_database


@pytest.mark.parametrize(
    ("namespace", "key", "excluded"),
    [
        (None, "digest", True),
        ("prod", "prod:digest", True),
        ("prod", "digest", False),
        (None, "prod:digest", False),
    ],
)
def test_a_foreign_session_that_takes_the_same_key_shares_the_lock(
    make_world: Callable[..., World],
    database: Database,
    namespace: str | None,
    key: str,
    excluded: bool,
) -> None:
    world = make_world(CRONLOCK_NAMESPACE=namespace)
    world.cron.job("digest", every=LONG)(world.mark)

    with database.connect(application_name="psql") as foreign, foreign.transaction():
        foreign.execute(TAKE, [key])
        outcome = world.run("digest")
        pid = foreign.info.backend_pid

    if not excluded:
        value_of(outcome)
        return
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert outcome.held_by == f"psql (backend {pid})"
    assert outcome.held_since is not None
    value_of(world.run("digest"))


def test_a_running_job_keeps_a_foreign_session_out(world: World, database: Database) -> None:
    world.cron.job("digest", every=LONG)(lambda: database.value(TAKE, "digest"))
    assert value_of(world.run("digest")) is False
    assert database.value(TAKE, "digest") is True


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_advisory_lock(1, 2)",
        "SELECT pg_advisory_lock((hashtextextended('digest', 0) >> 32)::int,"
        " (hashtextextended('digest', 0) & 2147483647)::int)",
    ],
)
def test_other_advisory_locks_are_in_nobodys_way(
    world: World, database: Database, statement: str
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    with database.connect() as foreign:
        foreign.execute(statement)
        value_of(world.run("digest"))


def random_names(count: int) -> list[str]:
    source = random.Random(7)
    names: set[str] = set()
    while len(names) < count:
        length = source.choice([1, 2, 8, 40, 63])
        head, rest = source.choice(LETTERS), source.choices(LETTERS + "-_", k=length - 1)
        names.add(head + "".join(rest))
    return sorted(names)


def test_any_name_locks_on_either_sign_of_key_and_is_decoded_by_holders(
    world: World, database: Database
) -> None:
    names = random_names(500)
    for name in names:
        world.cron.job(name)(lambda: None)
    with world.app.app_context():
        for name in names:
            value_of(world.cron.with_lock(name, lambda session: None))
    for name in names[::10]:
        value_of(world.run(name))

    with database.connect(application_name="psql") as foreign, foreign.transaction():
        keys = foreign.execute(
            "SELECT name, hashtextextended(name, 0) FROM unnest(%s::text[]) AS name"
            " WHERE pg_try_advisory_xact_lock(hashtextextended(name, 0))",
            [names],
        ).fetchall()
        shown = world.app.test_cli_runner().invoke(args=["cron", "holders", "--json"])

    holders = json.loads(shown.stdout)
    assert {holder["job"]: holder["key"] for holder in holders} == dict(keys)
    assert len(keys) == len(names)
    negative = sum(key < 0 for _, key in keys)
    assert 100 < negative < 400


def test_names_that_differ_only_at_the_end_are_two_locks(world: World) -> None:
    inside: list[Any] = []
    long = "x" * 62
    world.cron.job(f"{long}b")(lambda: None)
    world.cron.job(f"{long}a")(lambda: inside.append(elsewhere(lambda: world.run(f"{long}b"))))
    value_of(world.run(f"{long}a"))
    value_of(inside[0])


def test_two_jobs_whose_keys_collide_wait_for_each_other_and_both_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_cronlock.runner.lock_text", lambda namespace, name: "one")
    inside: list[Any] = []
    world.cron.job("b", every=LONG)(lambda: None)
    world.cron.job("a", every=LONG)(lambda: inside.append(elsewhere(lambda: world.run("b"))))

    value_of(world.run("a"))

    assert reason_of(inside[0]) is Reason.ALREADY_RUNNING
    value_of(world.run("b"))


def test_two_releases_with_different_keys_still_run_a_slot_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    value_of(world.run("digest"))
    monkeypatch.setattr("flask_cronlock.runner.lock_text", lambda namespace, name: "another")
    assert reason_of(world.run("digest")) is Reason.ALREADY_RAN
    assert world.marks == 1
