"""Which locks of others stand in a run's way, and which do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from flask_cronlock import Ran, Reason, Skipped

from ..support.databases import Database
from ..support.worlds import World

KEY = "hashtextextended('digest', 0)"


@pytest.fixture
def foreign(database: Database) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with database.connect() as connection:
        yield connection


@pytest.fixture
def world(world: World) -> World:
    @world.cron.job("digest", every="1d")
    def digest() -> None:
        world.mark()

    return world


@pytest.mark.parametrize(
    "lock",
    [
        "pg_advisory_lock(1)",
        "pg_advisory_lock(0)",
        "pg_advisory_lock(1, 1)",
        f"pg_advisory_lock(({KEY} >> 32)::int, ({KEY} << 32 >> 32)::int)",
        f"pg_advisory_lock({KEY} + 1)",
        "pg_advisory_lock(hashtext('digest'))",
        "pg_advisory_lock(hashtextextended('app:digest', 0))",
    ],
)
def test_locks_on_other_keys_never_block(
    world: World, foreign: psycopg.Connection[tuple[object, ...]], lock: str
) -> None:
    foreign.execute(f"SELECT {lock}")
    assert isinstance(world.run("digest"), Ran)


@pytest.mark.parametrize("scope", ["", "_xact"])
def test_a_service_that_follows_the_rule_of_the_key_shares_the_lock(
    world: World, foreign: psycopg.Connection[tuple[object, ...]], scope: str
) -> None:
    with foreign.transaction():
        foreign.execute("SET LOCAL application_name = 'the other service'")
        foreign.execute(f"SELECT pg_advisory{scope}_lock({KEY})")
        outcome = world.run("digest")
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert outcome.held_by is not None
    assert "the other service" in outcome.held_by
    foreign.execute("SELECT pg_advisory_unlock_all()")
    assert isinstance(world.run("digest"), Ran)


def test_the_key_of_a_namespaced_job_is_that_of_namespace_and_name(
    make_world: Callable[..., World], foreign: psycopg.Connection[tuple[object, ...]]
) -> None:
    world = make_world(CRONLOCK_NAMESPACE="app")

    @world.cron.job("digest", every="1d")
    def digest() -> None: ...

    foreign.execute("SELECT pg_advisory_lock(hashtextextended('app:digest', 0))")
    assert isinstance(world.run("digest"), Skipped)


def test_a_lock_in_another_database_never_blocks(world: World) -> None:
    with psycopg.connect(world.database.server.conninfo("postgres")) as elsewhere:
        elsewhere.execute(f"SELECT pg_advisory_xact_lock({KEY})")
        assert isinstance(world.run("digest"), Ran)
