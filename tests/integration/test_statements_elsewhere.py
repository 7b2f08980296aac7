"""Whatever is not surely a read counts as a write to another bind, and is warned of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Integer, column, delete, func, insert, select, table, text, union
from sqlalchemy.orm import declarative_base
from sqlalchemy.schema import CreateTable

from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

KEY = Column("id", Integer, primary_key=True)
EVENT = table("event", column("id"))
DELETED = delete(EVENT).returning(EVENT.c.id)
MAPPED = type("Event", (declarative_base(),), {"__tablename__": "event", "id": KEY})
BY_TEXT = text("DELETE FROM event RETURNING id").columns(column("id"))

WRITES: dict[str, Any] = {
    "after a comment": text("-- select\nDELETE FROM event"),
    "after a block comment": text("/* select */ INSERT INTO event VALUES (1)"),
    "in a nested comment's tail": text("/* /* */ values */ select 1 */ DELETE FROM event"),
    "in WITH": text("WITH x AS (INSERT INTO event VALUES (1) RETURNING id) SELECT id FROM x"),
    "in WITH after a parenthesis": text("(WITH x AS (DELETE FROM event RETURNING 1) TABLE x)"),
    "after a semicolon": text("SELECT 1; TRUNCATE event"),
    "into a new table": text("SELECT 1 AS id INTO kept"),
    "of a sequence": text("SELECT nextval('numbers')"),
    "for update": text("SELECT id FROM event FOR UPDATE"),
    "explained": text("EXPLAIN ANALYZE DELETE FROM event"),
    "unknown": text("CALL work()"),
    "core's own": insert(EVENT).values(id=1),
    "core's cte": select(insert(EVENT).values(id=1).returning(EVENT.c.id).cte()),
    "core's added cte": select(EVENT).add_cte(DELETED.cte()),
    "core's subquery": select(select(DELETED.cte()).subquery()),
    "core's union": union(select(EVENT.c.id), select(DELETED.cte())),
    "core's columns of text": BY_TEXT,
    "core's cte of text": select(BY_TEXT.cte()),
    "core's DDL": CreateTable(table("kept", column("id"))),  # type: ignore[arg-type]
    "core's call": func.work(),
    "a model's own text": select(MAPPED).from_statement(text("DELETE FROM event RETURNING id")),
}

READS: dict[str, Any] = {
    "after comments and parentheses": text("-- a\n /* b */ ( (SELECT 1)) ;\n"),
    "with": text("WITH x AS (SELECT 1) SELECT * FROM x"),
    "of a column named like a write": text("SELECT updated_at, inserted FROM event"),
    "core's own": select(EVENT).where(text("id > 1")),
    "core's cte": select(select(EVENT).cte()),
    "core's columns of text": text("SELECT id FROM event").columns(column("id")),
    "core's cte of text": select(text("TABLE event").columns(column("id")).cte()),
    "a model's own text": select(MAPPED).from_statement(text("SELECT id FROM event")),
}


@pytest.fixture(scope="module")
def other(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def warnings_of(
    make_world: Callable[..., World], other: Database, caplog: pytest.LogCaptureFixture
) -> Callable[[Any], int]:
    """Send a statement to another bind in a run, and count the warnings."""
    world = make_world(SQLALCHEMY_BINDS={"other": other.url})

    def send(statement: Any) -> int:
        @world.cron.job("digest", every=LONG)
        def digest() -> None:
            there = {"bind": world.db.engines["other"], "clause": statement}
            world.db.session.get_bind(**there)

        value_of(world.run("digest"))
        actions = [record.__dict__.get("action") for record in caplog.records]
        return actions.count("other_bind_written")

    return send


@pytest.mark.parametrize("statement", WRITES.values(), ids=WRITES)
def test_a_write_is_warned_of(warnings_of: Callable[[Any], int], statement: Any) -> None:
    assert warnings_of(statement) == 1


@pytest.mark.parametrize("statement", READS.values(), ids=READS)
def test_a_read_is_not(warnings_of: Callable[[Any], int], statement: Any) -> None:
    assert warnings_of(statement) == 0
