"""Nobody is marked for whom nothing was deferred, and nothing is deferred for who is not marked."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy import text

from flask_cronlock import Failed, Run

from ..support.outcomes import value_of
from ..support.tasks import Shared, deferred, rows, work_all
from ..support.worlds import World

USERS = ("1", "2", "3")


class Unwritable(Exception):
    pass


@pytest.fixture(scope="module")
def shared(module_world: World) -> Shared:
    module_world.database.query("CREATE TABLE stamp (name text PRIMARY KEY)")
    module_world.cron.task("send")(lambda name: module_world.note(name))
    return Shared(module_world)


@pytest.fixture
def world(shared: Shared) -> World:
    shared.world.database.emptied()
    return shared.world


def stamps(world: World) -> list[str]:
    return [name for (name,) in world.database.query("SELECT name FROM stamp ORDER BY 1")]


def unstamped(run: Run) -> list[str]:
    known = set(run.session.execute(text("SELECT name FROM stamp")).scalars())
    return [name for name in USERS if name not in known]


def stamp(run: Run, name: str, broken: bool) -> None:
    run.session.execute(text("INSERT INTO stamp VALUES (:name)"), {"name": name})
    run.defer("send", name=name)
    if broken:
        raise Unwritable(name)


def agree(world: World) -> None:
    assert sorted(item["name"] for item in deferred(world)) == stamps(world)


def test_all_or_nothing(world: World, shared: Shared) -> None:
    def body(run: Run) -> int:
        due = unstamped(run)
        for name in due:
            stamp(run, name, broken=name == broken)
        return len(due)

    broken = "2"
    assert isinstance(shared.digest(body), Failed)
    assert stamps(world) == []
    agree(world)

    broken = ""
    assert value_of(shared.digest(body)) == 3
    assert stamps(world) == [*USERS]
    agree(world)
    work_all(world)
    assert world.notes == [*USERS]


def test_each_in_a_savepoint_of_its_own(world: World, shared: Shared) -> None:
    def body(run: Run) -> int:
        done = 0
        for name in unstamped(run):
            with suppress(Unwritable), run.session.begin_nested():
                stamp(run, name, broken=name == broken)
                done += 1
        return done

    broken = "2"
    assert value_of(shared.digest(body)) == 2
    assert stamps(world) == ["1", "3"]
    agree(world)
    work_all(world)
    assert world.notes == ["1", "3"]

    broken = ""
    assert value_of(shared.digest(body, force=True)) == 1
    assert stamps(world) == [*USERS]
    agree(world)
    work_all(world)
    assert world.notes == [*USERS]


def test_a_swallowed_error_of_sql_outside_a_savepoint_marks_nobody(
    world: World, shared: Shared
) -> None:
    def body(run: Run) -> None:
        for name in ("1", "1", "2"):
            with suppress(Exception):
                stamp(run, name, broken=False)

    assert isinstance(shared.digest(body), Failed)
    assert stamps(world) == []
    assert rows(world) == []
