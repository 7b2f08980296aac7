"""What cannot be deferred safely is refused, and the transaction is as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import create_engine, func, insert, literal, select, text, union_all, update
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import (
    ArgumentError,
    ConfigError,
    CronLockError,
    DeferError,
    OnceError,
    RightsMissing,
    TablesMissing,
    UnknownTask,
)

from ..support.tasks import deferred, rows
from ..support.worlds import World

Refused = Callable[[World, Session], Any]


@pytest.fixture
def world(entered_world: World) -> World:
    @entered_world.cron.task
    def send(n: int) -> None: ...

    @entered_world.cron.task(queue="q" * 31)
    def far(n: int) -> None: ...

    return entered_world


def numbers(label: str = "n") -> Any:
    return select(func.generate_series(1, 3).label(label))


CALLS: dict[str, tuple[type[CronLockError], str, Refused]] = {
    "unknown task": (UnknownTask, "'nothing'", lambda w, s: w.cron.defer(s, "nothing", n=1)),
    "unknown function": (UnknownTask, "@cron.task", lambda w, s: w.cron.defer(s, rows, n=1)),
    "missing argument": (DeferError, "'n'", lambda w, s: w.cron.defer(s, "send")),
    "superfluous argument": (DeferError, "'m'", lambda w, s: w.cron.defer(s, "send", n=1, m=2)),
    "datetime": (
        ArgumentError,
        "isoformat()",
        lambda w, s: w.cron.defer(s, "send", n=datetime.now(UTC)),
    ),
    "model": (ArgumentError, "by its id", lambda w, s: w.cron.defer(s, "send", n=w.note_class())),
    "item that is no dict": (DeferError, "a dict", lambda w, s: w.cron.defer_many(s, "send", [1])),
    "item with other keys": (
        DeferError,
        "a dict",
        lambda w, s: w.cron.defer_many(s, "send", [{1: 2}]),
    ),
    "one dict for many": (
        DeferError,
        "a dict",
        lambda w, s: w.cron.defer_many(s, "send", {"n": 1}),
    ),
    "batch of 0": (DeferError, "batch=0", lambda w, s: w.cron.defer_many(s, "send", [], 0)),
    "batch of 10,001": (
        DeferError,
        "1 to 10,000",
        lambda w, s: w.cron.defer_many(s, "send", [], 10_001),
    ),
    "batch that is true": (
        DeferError,
        "batch=True",
        lambda w, s: w.cron.defer_from(s, "send", numbers(), True),
    ),
    "batch that is text": (
        DeferError,
        "batch='5'",
        lambda w, s: w.cron.defer_from(s, "send", numbers(), "5"),
    ),
    "update without returning": (
        DeferError,
        "'n'",
        lambda w, s: w.cron.defer_from(s, "send", update(w.note_class).values(text="a")),
    ),
    "insert without returning": (
        DeferError,
        "'n'",
        lambda w, s: w.cron.defer_from(s, "send", insert(w.note_class).values(text="a")),
    ),
    "wrong columns": (DeferError, "label", lambda w, s: w.cron.defer_from(s, "send", numbers("m"))),
    "one column too many": (
        DeferError,
        "label",
        lambda w, s: w.cron.defer_from(s, "send", numbers().add_columns(literal(1).label("m"))),
    ),
    "text": (
        DeferError,
        "returning()",
        lambda w, s: w.cron.defer_from(s, "send", text("SELECT 1 AS n")),
    ),
    "union": (
        DeferError,
        "select()",
        lambda w, s: w.cron.defer_from(s, "send", union_all(numbers(), numbers())),
    ),
    "unknown task of many": (
        UnknownTask,
        "nothing",
        lambda w, s: w.cron.defer_many(s, "nothing", []),
    ),
    "unknown task of a statement": (
        UnknownTask,
        "nothing",
        lambda w, s: w.cron.defer_from(s, "nothing", numbers()),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_cure_and_what_was_written_before_is_kept(
    world: World, name: str
) -> None:
    kind, told, call = CALLS[name]
    session = world.db.session()
    world.note("before")
    world.cron.defer(session, "send", n=1)

    with pytest.raises(kind) as refused:
        call(world, session)

    assert told in str(refused.value)
    world.note("after")
    world.cron.defer(session, "send", n=2)
    session.commit()
    assert deferred(world) == [{"n": 1}, {"n": 2}]
    assert world.notes == ["after", "before"]


def test_a_queue_that_is_too_long_with_the_namespace_is_refused(
    make_world: Callable[..., World],
) -> None:
    world = make_world(CRONLOCK_NAMESPACE="shop")
    world.cron.task("far", queue="q" * 36)(lambda n: None)
    world.cron.task("near", queue="q" * 35)(lambda n: None)
    with world.app.app_context():
        with pytest.raises(ConfigError, match="CRONLOCK_NAMESPACE"):
            world.cron.defer(world.db.session, "far", n=1)
        world.cron.defer(world.db.session, "near", n=1)
        world.db.session.commit()
    assert [len(row.queue) for row in rows(world)] == [40]


def autocommit_option(world: World) -> Session:
    return Session(world.db.engine.execution_options(isolation_level="AUTOCOMMIT"))


def autocommit_connection(world: World) -> Session:
    session = Session(world.db.engine)
    session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
    return session


@pytest.mark.parametrize("make", [autocommit_option, autocommit_connection])
def test_a_session_in_autocommit_is_refused(world: World, make: Callable[[World], Session]) -> None:
    with make(world) as session:
        with pytest.raises(DeferError, match="AUTOCOMMIT"):
            world.cron.defer(session, "send", n=1)
        with pytest.raises(DeferError, match="AUTOCOMMIT"):
            world.cron.defer_from(session, "send", numbers())
        with pytest.raises(OnceError, match="AUTOCOMMIT"):
            world.cron.once("a key", session)
    assert rows(world) == []


def test_a_session_on_another_engine_is_refused(world: World) -> None:
    other = create_engine(world.db.engine.url)
    with Session(other) as session:
        with pytest.raises(DeferError, match=r"bound to db\.engine"):
            world.cron.defer(session, "send", n=1)
        with pytest.raises(DeferError, match=r"bound to db\.engine"):
            world.cron.defer_from(session, "send", numbers())
        with pytest.raises(OnceError, match=r"bound to db\.engine"):
            world.cron.once("a key", session)
        session.commit()
    other.dispose()
    assert rows(world) == []


WAYS: dict[str, Refused] = {
    "one": lambda w, s: w.cron.defer(s, "send", n=1),
    "statement": lambda w, s: w.cron.defer_from(s, "send", numbers()),
}
MISSING = [
    "DROP FUNCTION procrastinate_defer_jobs_v1",
    "DROP TYPE procrastinate_job_to_defer_v1 CASCADE",
    "ALTER TABLE procrastinate_jobs RENAME TO elsewhere",
    "ALTER TABLE procrastinate_jobs RENAME queueing_lock TO elsewhere",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", MISSING)
def test_the_tables_of_the_queue_are_missing(world: World, way: str, change: str) -> None:
    session = world.db.session()
    session.execute(text(change))
    with pytest.raises(
        TablesMissing, match=r"flask cron init-db.*those of the queue; .*search_path"
    ):
        WAYS[way](world, session)
    session.rollback()


@pytest.mark.parametrize("way", WAYS)
def test_a_role_without_rights_on_the_queue_is_told_so(world: World, way: str) -> None:
    session = world.db.session()
    session.execute(text("CREATE ROLE nobody_here"))
    session.execute(text("SET LOCAL ROLE nobody_here"))
    with pytest.raises(RightsMissing, match=r"docs/configuration\.md"):
        WAYS[way](world, session)
    session.rollback()


def test_what_is_wrong_with_the_statement_itself_is_told_as_it_is(world: World) -> None:
    world.cron.task("take")(lambda **arguments: None)
    missing = select(func.no_such_function().label("procrastinate_n"))
    with pytest.raises(ProgrammingError, match="no_such_function"):
        world.cron.defer_from(world.db.session, "take", missing)
