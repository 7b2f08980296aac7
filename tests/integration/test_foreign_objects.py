"""What the caller loaded before the lock was taken is refused under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from flask_cronlock.exceptions import ForeignObject

from ..support.locking import thing_class
from ..support.outcomes import value_of
from ..support.worlds import World


@pytest.fixture
def world(entered_world: World) -> World:
    return entered_world


@dataclass
class Outside:
    """An object that the caller loaded, and its session."""

    thing: Any
    kind: Any
    session: Any


@pytest.fixture
def outside(world: World) -> Iterator[Outside]:
    kind = thing_class(world)
    world.db.create_all()
    session = world.db.session
    owner = kind(id=1, name="owner")
    session.add_all([owner, kind(id=2, name="thing", owner=owner)])
    session.commit()
    session.remove()
    yield Outside(session.get(kind, 2), kind, session())
    session.remove()
    world.database.query("DROP TABLE thing")


def load_lazily(outside: Outside, session: Session) -> None:
    outside.thing.owner  # noqa: B018


def set_an_attribute(outside: Outside, session: Session) -> None:
    outside.thing.name = "changed"


def refresh(outside: Outside, session: Session) -> None:
    outside.session.refresh(outside.thing)


def query(outside: Outside, session: Session) -> None:
    outside.session.execute(text("SELECT 1"))


def add(outside: Outside, session: Session) -> None:
    outside.session.add(outside.kind(id=3))


def delete(outside: Outside, session: Session) -> None:
    outside.session.delete(outside.thing)


def flush(outside: Outside, session: Session) -> None:
    outside.session.add(outside.kind(id=3))
    outside.session.flush()


@pytest.mark.parametrize(
    "deed", [load_lazily, set_an_attribute, refresh, query, add, delete, flush]
)
def test_what_was_loaded_outside_is_refused_inside(
    world: World, outside: Outside, deed: Callable[[Outside, Session], None]
) -> None:
    def work(session: Session) -> None:
        world.note("gone")
        deed(outside, session)

    with pytest.raises(ForeignObject, match="load it again"):
        world.cron.with_lock("cache", work)

    outside.session.rollback()
    assert world.notes == []
    assert outside.thing.owner.name == "owner"


def test_a_copy_merged_into_the_locks_session_is_allowed(world: World, outside: Outside) -> None:
    def work(session: Session) -> str:
        mine = session.merge(outside.thing, load=True)
        assert outside.thing.name == "thing"
        mine.name = "changed"
        return str(mine.owner.name)

    assert value_of(world.cron.with_lock("cache", work)) == "owner"
    assert world.database.value("SELECT name FROM thing WHERE id = 2") == "changed"


def test_what_was_pending_outside_before_stays_pending(world: World, outside: Outside) -> None:
    outside.session.add(outside.kind(id=3))

    value_of(world.cron.with_lock("cache", lambda session: world.note("kept")))

    assert len(outside.session.new) == 1
    assert world.notes == ["kept"]
    assert world.db.session() is outside.session
