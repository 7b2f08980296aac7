"""Each part of the proof on its own: that it is the claim's transaction, and that it was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import update

from flask_cronlock.exceptions import LockLost, OutcomeUnknown
from flask_cronlock.ledger import Ledger
from flask_cronlock.planning import Plan
from flask_cronlock.run import Run
from flask_cronlock.state import this_state
from flask_cronlock.transaction import GuardedTransaction

from ..support.databases import Database
from ..support.outcomes import LONG
from ..support.wire import Cut, wire_before
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

COMMIT = b"COMMIT\0"


@contextmanager
def begun(world: World) -> Iterator[GuardedTransaction]:
    with (
        world.app.app_context(),
        GuardedTransaction(world.db.engine, timedelta(seconds=60), "me/1") as tx,
    ):
        yield tx


@contextmanager
def claimed(world: World) -> Iterator[tuple[GuardedTransaction, Ledger, Run]]:
    """Claim a slot, as a run does before its job."""
    world.cron.job("digest", every=LONG)(world.mark)
    with begun(world) as tx:
        state = this_state()
        plan = Plan(state.jobs.get("digest"), state.config, "world", "manual", None, False)
        run = plan.make_run(tx.clock)
        assert state.ledger.claim(tx, run, plan.look_back) is None
        yield tx, state.ledger, run


def test_done_is_written_in_the_transaction_of_the_claim(world: World) -> None:
    with claimed(world) as (tx, ledger, run):
        ledger.finish(tx, run, "null")
        tx.commit()
    assert [state for *_, state in world.runs()] == ["done"]


@pytest.mark.parametrize(
    ("part", "other"),
    [("pid", 1), ("began", datetime(2020, 1, 1, tzinfo=UTC)), ("xid", "3")],
    ids=["pid", "began", "xid"],
)
def test_done_is_written_only_in_the_transaction_of_the_claim(
    world: World, part: str, other: Any
) -> None:
    with claimed(world) as (tx, ledger, run):
        setattr(tx, part, other)
        with pytest.raises(LockLost):
            ledger.finish(tx, run, "null")
    assert world.runs() == []


def test_a_claim_that_is_broken_is_not_done(world: World) -> None:
    with claimed(world) as (tx, ledger, run):
        tx.execute(update(ledger.run).values(state="broken"))
        with pytest.raises(LockLost):
            ledger.finish(tx, run, "null")


@pytest.mark.parametrize(
    ("part", "other"), [("pid", 1), ("began", datetime(2020, 1, 1, tzinfo=UTC))]
)
def test_a_lock_is_proved_only_in_the_transaction_that_took_it(
    world: World, part: str, other: Any
) -> None:
    with begun(world) as tx:
        tx.prove()
        setattr(tx, part, other)
        with pytest.raises(LockLost):
            tx.prove()


def test_an_aborted_transaction_is_lost_before_anything_is_asked_of_it(world: World) -> None:
    with begun(world) as tx:
        tx.check()
        with suppress(psycopg.errors.DivisionByZero):
            tx.driver.execute("SELECT 1/0")
        with pytest.raises(LockLost):
            tx.check()


def test_a_commit_of_which_the_server_does_not_know_the_end_is_unknown(
    make_world: Callable[..., World], database: Database
) -> None:
    """The server calls the transaction in progress for as long as it is asked."""
    with wire_before(database) as wire, database.connect() as other, other.transaction():
        row = other.execute("SELECT pg_current_xact_id()::text").fetchone()
        assert row is not None
        with begun(make_world(url=wire.url(database))) as tx:
            tx.xid = row[0]
            wire.cut_at(COMMIT, Cut.BEFORE)
            with pytest.raises(OutcomeUnknown):
                tx.commit()


@pytest.mark.parametrize("kept", [True, False])
def test_an_attempt_is_recorded_only_where_the_run_is_not_there(world: World, kept: bool) -> None:
    """A commit that was called unknown may have been one."""
    with claimed(world) as (tx, ledger, run):
        ledger.finish(tx, run, "null")
        if kept:
            tx.commit()
    with begun(world) as tx:
        ledger.record_failure(tx, run, "OutcomeUnknown", None)
        tx.commit()
    assert [state for *_, state in world.runs()] == ["done"] * kept
    assert len(world.attempts()) == (not kept)


def test_a_connection_whose_commit_was_broken_off_is_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is still on its way there would reach whoever came next."""

    def break_off(*_: Any, **__: Any) -> None:
        raise TimeoutError

    with begun(world) as tx:
        monkeypatch.setattr(tx.driver, "execute", break_off)
        tx.commit()
    with begun(world) as after:
        assert after.pid != tx.pid
