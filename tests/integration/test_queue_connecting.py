"""Where a worker connects to: tried at its start, and refused with the cure where it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from flask_cronlock.exceptions import ConfigError, DatabaseUnreachable, TablesMissing
from flask_cronlock.queue.connecting import Way, find_way
from flask_cronlock.state import this_state

from ..support.databases import Database, Server, fresh_database
from ..support.pgbouncer import PgBouncer
from ..support.worlds import World, bare_world

MakeWorld = Callable[..., World]


@pytest.fixture
def other_database(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


def way_of(world: World) -> Way:
    with world.app.app_context():
        return find_way(this_state())


def role_of(way: Way) -> str:
    with psycopg.connect(**way.parameters) as connection:
        return str(connection.execute("SELECT current_user").fetchone()[0])  # type: ignore[index]


def test_without_an_address_it_is_the_apps_own_way_with_all_that_is_in_effect_there(
    make_world: MakeWorld,
) -> None:
    arguments = {"options": "-c search_path=public,pg_temp", "application_name": "shop"}
    world = make_world(engine_options={"connect_args": arguments})
    way = way_of(world)
    assert str(way) == "polling each second"
    assert not way.listens
    with psycopg.connect(**way.parameters) as connection:
        for name, value in (("search_path", "public,pg_temp"), ("application_name", "shop")):
            assert connection.execute(f"SHOW {name}").fetchone() == (value,)


def test_the_address_is_taken_as_an_apps_own_and_listened_at(
    make_world: MakeWorld, database: Database
) -> None:
    plain = database.url.replace("+psycopg", "")
    for url in (database.url, plain, plain.replace("postgresql", "postgres")):
        way = way_of(make_world(CRONLOCK_WORKER_URL=url))
        assert way.listens
        assert str(way) == "direct, listening"
        assert role_of(way) == "postgres"


def listeners(pooled: str) -> list[Any]:
    """Return the channels that any of the pooler's backends listens to: each client has one."""
    with ExitStack() as open_at_once:
        found = []
        for _ in range(2):
            client = psycopg.connect(pooled.replace("+psycopg", ""))
            open_at_once.enter_context(client)
            found += client.execute("SELECT pg_listening_channels()").fetchall()
        return found


def test_at_a_poolers_address_it_looks_and_has_no_backend_listen(
    make_world: MakeWorld,
    database: Database,
    pgbouncer: PgBouncer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    way = way_of(make_world(CRONLOCK_WORKER_URL=pgbouncer.url(database)))
    assert not way.listens
    assert way.poll_every == 1
    assert "leads through a pooler, where nothing can listen" in caplog.text
    assert listeners(pgbouncer.url(database)) == []


def refusal(world: World) -> str:
    with pytest.raises(ConfigError) as caught:
        way_of(world)
    return str(caught.value)


def test_the_address_of_another_database_is_refused(
    make_world: MakeWorld, other_database: Database
) -> None:
    world = make_world(CRONLOCK_WORKER_URL=other_database.url)
    assert "another database than SQLALCHEMY_DATABASE_URI" in refusal(world)


def test_an_address_that_finds_other_tables_is_refused(
    make_world: MakeWorld, database: Database
) -> None:
    url = make_url(database.url).update_query_dict({"options": "-csearch_path=pg_catalog"})
    world = make_world(CRONLOCK_WORKER_URL=url.render_as_string(hide_password=False))
    assert "other queue tables than the app" in refusal(world)


def test_the_address_of_a_server_without_writes_is_refused(
    make_world: MakeWorld, database: Database
) -> None:
    options = {"options": "-cdefault_transaction_read_only=on"}
    url = make_url(database.url).update_query_dict(options)
    world = make_world(CRONLOCK_WORKER_URL=url.render_as_string(hide_password=False))
    assert "takes no writes: name the primary" in refusal(world)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://boss:p4ssw0rd@127.0.0.1:1/shop?connect_timeout=p4ssw0rd", "cannot be used"),
        ("postgresql://boss:p4ssw0rd@127.0.0.1:http/shop", "is no URL such as"),
        ("postgresql://boss:p4ssw0rd@127.0.0.1/shop?p4ssw0rd=1", "is no URL such as"),
    ],
)
def test_a_broken_address_is_refused_without_its_password(
    make_world: MakeWorld, url: str, words: str
) -> None:
    told = refusal(make_world(CRONLOCK_WORKER_URL=url))
    assert "CRONLOCK_WORKER_URL" in told
    assert words in told
    assert "p4ssw0rd" not in told


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:p4ssw0rd@127.0.0.1:1/shop",
        "postgresql://boss:p4ssw0rd@/shop?host=/p4ssw0rd-is-nowhere",
    ],
)
def test_one_where_nothing_answers_is_named_without_its_password(
    make_world: MakeWorld, url: str
) -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        way_of(make_world(CRONLOCK_WORKER_URL=url))
    assert "that of CRONLOCK_WORKER_URL (" in str(caught.value)
    assert "p4ssw0rd" not in str(caught.value)


def test_no_repr_of_a_way_shows_its_password() -> None:
    way = Way({"password": "p4ssw0rd"}, direct=True, listens=True)
    assert "p4ssw0rd" not in repr(way) + str(way)


def test_a_queue_without_tables_is_refused_with_the_cure(database: Database) -> None:
    with bare_world(database) as world, pytest.raises(TablesMissing, match="flask cron init-db"):
        way_of(world)
