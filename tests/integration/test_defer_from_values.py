"""What a fan-out in one statement makes of the server's values, and of very many rows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from sqlalchemy import cast, event, func, literal, null, select, text
from sqlalchemy.dialects import postgresql

from ..support.tasks import deferred
from ..support.worlds import World

MANY = 120_000


@pytest.fixture
def world(entered_world: World) -> World:
    entered_world.cron.task("send")(lambda **arguments: None)
    return entered_world


def test_values_arrive_as_json(world: World) -> None:
    session = world.db.session()
    at = datetime(2026, 1, 5, 7, tzinfo=UTC)
    values = select(
        literal(at).label("at"),
        literal(Decimal("12.50")).label("price"),
        literal(UUID(int=7)).label("id"),
        null().label("nothing"),
        literal(True).label("yes"),
        literal('{"}\\ \U0001f600').label("text"),
        cast(text("'[1, {\"a\": null}]'"), postgresql.JSONB).label("json"),
        cast(text("'{1,2}'"), postgresql.ARRAY(postgresql.INTEGER)).label("numbers"),
    )
    session.execute(text("SET LOCAL timezone = 'Asia/Tokyo'"))
    assert world.cron.defer_from(session, "send", values) == 1
    session.commit()
    [item] = deferred(world)
    assert datetime.fromisoformat(item.pop("at")) == at
    assert item == {
        "price": 12.5,
        "id": str(UUID(int=7)),
        "nothing": None,
        "yes": True,
        "text": '{"}\\ \U0001f600',
        "json": [1, {"a": None}],
        "numbers": [1, 2],
    }


@pytest.mark.parametrize(("batch", "expected"), [(500, 240), (7_000, 18)])
def test_any_number_of_rows_is_one_statement(world: World, batch: int, expected: int) -> None:
    session = world.db.session()
    statements: list[str] = []
    numbers = select(func.generate_series(1, MANY).label("n"))
    connection = session.connection()
    event.listen(connection, "before_cursor_execute", lambda *about: statements.append(about[2]))
    assert world.cron.defer_from(session, "send", numbers, batch) == MANY
    session.commit()
    assert len([sql for sql in statements if "procrastinate" in sql]) == 1
    counted = world.database.query(
        "SELECT count(*), sum(jsonb_array_length(args->'items')) FROM procrastinate_jobs"
    )
    assert counted == [(expected, MANY)]
    distinct = world.database.value(
        "SELECT count(DISTINCT item) FROM procrastinate_jobs, jsonb_array_elements(args->'items')"
        " AS item"
    )
    assert distinct == MANY
