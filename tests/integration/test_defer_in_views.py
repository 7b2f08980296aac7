"""Deferring outside a run: kept with the transaction of the session that is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import request
from sqlalchemy.orm import Session

from flask_cronlock import Run

from ..support.databases import Database
from ..support.outcomes import LONG, value_of
from ..support.tasks import deferred, rows, work_all
from ..support.worlds import World, world_on


@pytest.fixture(scope="module", params=["direct", "pgbouncer"])
def shared(request: pytest.FixtureRequest, module_database: Database) -> Iterator[World]:
    url = module_database.url
    if request.param == "pgbouncer":
        url = request.getfixturevalue("pgbouncer").url(module_database)
    with world_on(module_database, url=url) as world:
        serve(world)
        yield world


def serve(world: World) -> None:
    """Set up a task, a job that defers it, and a view that does."""
    cron, session = world.cron, world.db.session

    @cron.task
    def send(n: int) -> None:
        world.note(f"sent {n}")

    @cron.job(every=LONG)
    def digest(run: Run) -> None:
        cron.defer(run.session, send, n=1)
        cron.defer(session, send, n=1)

    @world.app.post("/order")
    def order() -> str:
        world.note("ordered")
        cron.defer(session, send, n=1)
        cron.defer_many(session, "send", [{"n": 2}, {"n": 3}], batch=2)
        match request.args["then"]:
            case "commit":
                assert rows(world) == []
                session.commit()
            case "rollback":
                session.rollback()
            case "raise":
                raise ValueError("after all")
        return ""


@pytest.fixture
def world(shared: World) -> World:
    shared.database.emptied()
    return shared


@pytest.mark.parametrize("then", ["commit", "rollback", "raise", "forget"])
def test_a_view_keeps_it_with_its_own_commit(world: World, then: str) -> None:
    world.app.test_client().post(f"/order?then={then}")
    kept = then == "commit"
    assert deferred(world) == ([{"n": 1}, {"n": 2}, {"n": 3}] if kept else [])
    assert world.notes == (["ordered"] if kept else [])


def test_a_transaction_has_one_id_for_all(world: World) -> None:
    with world.app.app_context():
        world.note("ordered")
        world.cron.defer(world.db.session, "send", n=1)
        world.db.session.commit()
    ids = world.database.query(
        "SELECT xmin::text FROM note UNION SELECT xmin::text FROM procrastinate_jobs"
    )
    assert len(ids) == 1


def test_a_savepoint_drops_its_own_alone(world: World) -> None:
    with world.app.app_context():
        session = world.db.session
        for n in range(4):
            nested = session.begin_nested()
            world.cron.defer(session, "send", n=n)
            if n % 2:
                nested.rollback()
            else:
                nested.commit()
        session.commit()
    assert deferred(world) == [{"n": 0}, {"n": 2}]


@pytest.mark.parametrize("kept", [True, False])
def test_a_session_of_ones_own(world: World, kept: bool) -> None:
    with world.app.app_context(), Session(world.db.engine) as session:
        world.cron.defer(session, "send", n=1)
        session.commit() if kept else session.rollback()
    assert len(rows(world)) == kept


@pytest.mark.parametrize("kept", [True, False])
def test_work_under_a_lock(world: World, kept: bool) -> None:
    def work(session: Session) -> None:
        world.cron.defer(session, "send", n=1)
        assert rows(world) == []
        if not kept:
            raise ValueError("after all")

    with world.app.app_context():
        if kept:
            value_of(world.cron.with_lock("cache", work))
        else:
            with pytest.raises(ValueError, match="after all"):
                world.cron.with_lock("cache", work)
    assert len(rows(world)) == kept


def test_a_job_too(world: World) -> None:
    value_of(world.run("digest"))
    work_all(world)
    assert world.notes == ["sent 1", "sent 1"]


def test_each_call_makes_an_item_of_its_own(world: World) -> None:
    with world.app.app_context():
        for _ in range(2):
            world.cron.defer(world.db.session, "send", n=1)
        world.db.session.commit()
    work_all(world)
    assert world.notes == ["sent 1", "sent 1"]


def test_no_connection_is_left_behind(world: World) -> None:
    for then in ("commit", "rollback", "raise", "forget"):
        world.app.test_client().post(f"/order?then={then}")
    with world.app.app_context():
        assert world.db.engine.pool.checkedout() == 0
