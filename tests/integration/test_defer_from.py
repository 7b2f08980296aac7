"""A fan-out in one statement: what the server selects or marks, it defers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    MetaData,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import DeferError

from ..support.databases import Database
from ..support.tasks import deferred, rows, work_all
from ..support.worlds import World, world_on


@pytest.fixture(scope="module")
def shared(module_database: Database) -> Iterator[World]:
    with world_on(module_database) as world:
        world.database.query(
            "CREATE TABLE member (uid serial PRIMARY KEY, name text, queue text, task text,"
            " origin text, stamped timestamptz)"
        )
        world.cron.task("send")(lambda **arguments: None)
        world.cron.task("greet")(lambda user_id: world.note(str(user_id)))
        yield world


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    shared.database.emptied()
    with shared.app.app_context():
        yield shared


@pytest.fixture(scope="module")
def member(shared: World) -> Any:
    db = shared.db

    class Member(db.Model):  # type: ignore[name-defined, misc]
        __tablename__ = "member"
        user_id = db.Column("uid", db.Integer, primary_key=True)
        name = db.Column(db.Text)
        queue = db.Column(db.Text)
        task = db.Column(db.Text)
        origin = db.Column(db.Text)
        stamped = db.Column(db.DateTime(timezone=True))

    return Member


@pytest.fixture
def three(world: World, member: Any) -> Session:
    """A session in which three members are known."""
    session = world.db.session()
    session.add_all([member(name=name) for name in "abc"])
    session.commit()
    return session


def names(world: World) -> list[str]:
    return sorted(item["name"] for item in deferred(world))


CALLS = text(
    "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'procrastinate_defer_jobs_v1'"
)
SOURCES: dict[str, Callable[[Any], Any]] = {
    "update": lambda m: update(m).values(queue="mail").returning(m.name),
    "insert": lambda m: insert(m).values([{"name": name} for name in "def"]).returning(m.name),
    "insert from select": lambda m: (
        postgresql.insert(m).from_select(["name"], select(m.name)).returning(m.name)
    ),
    "delete": lambda m: delete(m).returning(m.name),
    "select": lambda m: select(m.name),
    "select of the table": lambda m: select(m.__table__.c.name).order_by(m.name).limit(3),
    "locked rows": lambda m: select(m.name).with_for_update(skip_locked=True),
}


@pytest.mark.parametrize("batch", [1, 2, 500])
@pytest.mark.parametrize("name", SOURCES)
def test_each_row_of_a_statement_is_deferred(
    world: World, member: Any, three: Session, name: str, batch: int
) -> None:
    count = world.cron.defer_from(three, "send", SOURCES[name](member), batch)
    assert (count, type(count)) == (3, int)
    assert rows(world) == []
    three.commit()
    assert names(world) == (["d", "e", "f"] if name == "insert" else ["a", "b", "c"])
    assert (
        sorted(len(row.items) for row in rows(world)) == {1: [1, 1, 1], 2: [1, 2], 500: [3]}[batch]
    )


def test_the_mark_and_the_calls_are_kept_together_or_not_at_all(
    world: World, member: Any, three: Session
) -> None:
    due = select(member.user_id).where(member.stamped.is_(None)).limit(2)
    due_ids = due.with_for_update(skip_locked=True).cte("due")
    stamp = (
        update(member)
        .values(stamped=func.now())
        .where(member.user_id == due_ids.c.user_id)
        .returning(member.name)
    )
    marked = "SELECT count(*) FROM member WHERE stamped IS NOT NULL"
    assert world.cron.defer_from(three, "send", stamp, batch=10) == 2
    three.rollback()
    assert (rows(world), world.database.value(marked)) == ([], 0)

    for count in (2, 1, 0):
        assert world.cron.defer_from(three, "send", stamp, batch=10) == count
        three.commit()
    assert (names(world), world.database.value(marked)) == (["a", "b", "c"], 3)


@pytest.mark.parametrize("batch", [1, 500])
def test_no_rows_are_none(world: World, member: Any, batch: int) -> None:
    session = world.db.session()
    count = world.cron.defer_from(session, "send", select(member.name), batch)
    assert (count, type(count)) == (0, int)
    session.commit()
    assert rows(world) == []


def test_columns_of_any_name_may_be_set_and_asked_for(
    world: World, member: Any, three: Session
) -> None:
    stamp = (
        update(member)
        .values(queue="q", task="t", origin=bindparam("queue_of", "o"))
        .where(member.name == bindparam("task_of", "a"))
        .returning(member.name, member.queue, member.task, member.origin)
    )
    assert world.cron.defer_from(three, "send", stamp) == 1
    three.commit()
    assert deferred(world) == [{"name": "a", "queue": "q", "task": "t", "origin": "o"}]
    assert [(row.queue, row.task) for row in rows(world)] == [("cronlock.default", "send")]


@pytest.mark.parametrize(
    ("items", "batch", "calls"), [(2_500, 1, 3), (110_000, 10_000, 2), (90_000, 500, 1)]
)
def test_the_queues_function_is_never_given_more_than_an_array_holds(
    world: World, items: int, batch: int, calls: int
) -> None:
    session = world.db.session()
    session.execute(text("SET LOCAL track_functions = 'all'"))
    before = session.execute(CALLS).scalar() or 0
    numbers = select(func.generate_series(1, items).label("n"))

    assert world.cron.defer_from(session, "send", numbers, batch) == items

    assert session.execute(CALLS).scalar_one() - before == calls
    session.commit()
    whole = {row["n"] for row in deferred(world)}
    assert (len(rows(world)), whole) == (-(-items // batch), set(range(1, items + 1)))


def test_the_columns_are_the_arguments(world: World, member: Any, three: Session) -> None:
    world.cron.defer_from(three, "greet", select(member.user_id.label("user_id")))
    three.commit()
    assert sorted(deferred(world), key=str) == [{"user_id": n} for n in (1, 2, 3)]
    work_all(world)
    assert world.notes == ["1", "2", "3"]


OTHERWISE: dict[str, Callable[[Any], Any]] = {
    "select": lambda m: select(m.user_id),
    "select of a table": lambda m: select(
        Table("member", MetaData(), Column("uid", key="user_id"))
    ),
    "update": lambda m: update(m).values(name="x").returning(m.user_id),
    "no name": lambda m: select(m.user_id + 1),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_an_attribute_of_another_name_than_its_column_is_to_be_labelled(
    world: World, member: Any, three: Session, name: str
) -> None:
    with pytest.raises(DeferError, match=r'label\("user_id"\)'):
        world.cron.defer_from(three, "greet", OTHERWISE[name](member))
    three.commit()
    assert rows(world) == []


def test_an_entity_is_all_its_columns(world: World, member: Any, three: Session) -> None:
    world.cron.defer_from(three, "send", select(member).where(member.name == "a"))
    three.commit()
    [item] = deferred(world)
    assert item.keys() == {"uid", "name", "queue", "task", "origin", "stamped"}


def test_objects_that_are_not_flushed_yet_are_seen(world: World, member: Any) -> None:
    session = world.db.session()
    session.add(member(name="new"))
    assert world.cron.defer_from(session, "send", select(member.name)) == 1
    session.commit()
    assert names(world) == ["new"]


def test_a_savepoint_drops_its_own_alone(world: World, member: Any, three: Session) -> None:
    nested = three.begin_nested()
    world.cron.defer_from(three, "send", delete(member).returning(member.name))
    nested.rollback()
    world.cron.defer_from(three, "send", select(member.name).where(member.name == "b"))
    three.commit()
    assert names(world) == ["b"]
