"""The id of a lost COMMIT may be somebody else's by the time that the server is asked about it.

A server that crashed, or that took another one's place, gives anew the ids it never heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flask_cronlock import Ran, transaction
from flask_cronlock.exceptions import LockLost, OutcomeUnknown

from ..support.databases import Database
from ..support.outcomes import LONG, error_of, value_of
from ..support.processes import wait_until
from ..support.wire import Cut, Wire
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

COMMIT = b"COMMIT\0"


@pytest.fixture
def world(make_world: Callable[..., World], database: Database, wire: Wire) -> World:
    world = make_world(url=wire.url(database))
    world.cron.job("digest", every=LONG)(lambda: world.note("sent"))
    return world


@pytest.fixture
def somebodys(database: Database) -> str:
    """The id of a transaction of somebody else's, which was committed."""
    return str(database.value("SELECT pg_current_xact_id()::text"))


@pytest.fixture
def given_anew(monkeypatch: pytest.MonkeyPatch, somebodys: str) -> None:
    """Let the server have given the id that is asked for to somebody else."""
    ask = transaction.status_of
    monkeypatch.setattr(transaction, "status_of", lambda xid, *about: ask(somebodys, *about))


@pytest.mark.usefixtures("given_anew")
def test_a_run_that_was_not_kept_has_failed_and_can_run_again(world: World, wire: Wire) -> None:
    wire.cut_at(COMMIT, Cut.BEFORE)

    assert type(error_of(world.run("digest"))) is LockLost
    assert wire.was_cut.is_set()
    assert (world.notes, world.runs(), len(world.attempts())) == ([], [], 1)

    wait_until(lambda: world.database.advisory_locks() == 0)
    value_of(world.run("digest"))
    assert world.notes == ["sent"]


@pytest.mark.usefixtures("given_anew")
def test_a_run_that_was_kept_ran(world: World, wire: Wire) -> None:
    wire.cut_at(COMMIT, Cut.AFTER)

    value_of(world.run("digest"))

    assert wire.was_cut.is_set()
    assert world.notes == ["sent"]


def test_work_under_a_lock_was_kept_only_if_the_same_server_says_so(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves no row that could be looked for."""
    ask = transaction.status_of

    def of_another(xid: str, server: str, *about: Any) -> str | None:
        return ask(xid, f"before the crash of {server}", *about)

    with world.app.app_context():
        wire.cut_at(COMMIT, Cut.AFTER)
        assert isinstance(world.cron.with_lock("cache", lambda _: world.note("one")), Ran)

        monkeypatch.setattr(transaction, "status_of", of_another)
        wire.cut_at(COMMIT, Cut.AFTER)
        with pytest.raises(OutcomeUnknown):
            world.cron.with_lock("cache", lambda _: world.note("two"))


def test_a_server_is_the_same_in_every_zone_and_style_of_dates(world: World, wire: Wire) -> None:
    """A connection comes from the pool as somebody left it."""
    with world.app.app_context():
        world.db.session.execute(world.db.text("SET TIME ZONE 'Asia/Tokyo'"))
        world.db.session.execute(world.db.text("SET DateStyle = 'SQL, DMY'"))
        world.db.session.commit()
        world.db.session.remove()
        wire.cut_at(COMMIT, Cut.AFTER)

        assert isinstance(world.cron.with_lock("cache", lambda _: world.note("one")), Ran)

    assert world.notes == ["one"]
