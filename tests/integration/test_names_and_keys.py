"""Lock keys: the published ones, over the whole range, and which locks of others exclude."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from flask_cronlock import Reason, Skipped

from ..support.databases import Database
from ..support.outcomes import LONG, elsewhere, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
KEY = "hashtextextended('digest', 0)"
TAKE = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"


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
    "key",
    [
        "0",
        "1, 2",
        "hashtext('digest')",
        f"{KEY} + 1",
        f"({KEY} >> 32)::int, ({KEY} << 32 >> 32)::int",
    ],
)
def test_locks_on_other_keys_are_in_nobodys_way(world: World, database: Database, key: str) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    with database.connect() as foreign:
        foreign.execute(f"SELECT pg_advisory_lock({key})")
        value_of(world.run("digest"))


def test_a_lock_in_another_database_is_in_nobodys_way(world: World, database: Database) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    with psycopg.connect(database.server.conninfo("postgres")) as elsewhere:
        elsewhere.execute(f"SELECT pg_advisory_xact_lock({KEY})")
        value_of(world.run("digest"))


def test_a_foreign_lock_that_outlives_its_transaction_excludes_until_it_is_freed(
    world: World, database: Database
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    with database.connect() as foreign:
        foreign.execute(f"SELECT pg_advisory_lock({KEY})")
        assert reason_of(world.run("digest")) is Reason.ALREADY_RUNNING
        foreign.execute(f"SELECT pg_advisory_unlock({KEY})")
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
