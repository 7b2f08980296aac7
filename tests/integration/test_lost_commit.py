"""The answer to COMMIT is lost, or is not the one that was hoped for."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest

from flask_cronlock import Failed, Ran, Reason, Skipped, transaction
from flask_cronlock.exceptions import LockLost, OutcomeUnknown
from flask_cronlock.transaction import GuardedTransaction

from ..support.databases import Database
from ..support.outcomes import error_of
from ..support.processes import wait_until
from ..support.wire import Cut, Wire
from ..support.worlds import World

COMMIT = b"COMMIT\0"


@pytest.fixture
def world(make_world: Callable[..., World], database: Database, wire: Wire) -> World:
    """A world behind the wire, with a job of a slot that writes one note."""
    world = make_world(url=wire.url(database))

    @world.cron.job("digest", every="1d", timeout="3s")
    def digest() -> None:
        world.mark()
        world.note("sent")

    return world


def wait_for_the_server(world: World) -> None:
    """Wait until the server has seen that the connection broke."""
    wait_until(lambda: world.database.advisory_locks() == 0)


def test_a_run_whose_commit_was_done_but_not_answered_ran(world: World, wire: Wire) -> None:
    wire.cut_at(COMMIT, Cut.AFTER)
    outcome = world.run("digest")
    assert wire.was_cut.is_set()
    assert isinstance(outcome, Ran), outcome

    again = world.run("digest")
    assert isinstance(again, Skipped)
    assert again.reason is Reason.ALREADY_RAN
    assert world.marks == 1
    assert world.notes == ["sent"]
    assert [state for _, _, state in world.runs()] == ["done"]
    assert world.attempts() == []


def test_a_run_whose_commit_never_arrived_failed_and_can_run_again(
    world: World, wire: Wire
) -> None:
    wire.cut_at(COMMIT, Cut.BEFORE)
    outcome = world.run("digest")
    assert wire.was_cut.is_set()
    assert isinstance(outcome, Failed), outcome
    assert type(outcome.error) is LockLost
    assert world.notes == []
    assert world.runs() == []
    assert len(world.attempts()) == 1

    wait_for_the_server(world)
    assert isinstance(world.run("digest"), Ran)
    assert world.notes == ["sent"]


@pytest.mark.parametrize(
    ("cut", "settled"), [(Cut.AFTER, "already ran"), (Cut.BEFORE, "ran")], ids=["done", "not done"]
)
def test_an_outcome_that_cannot_be_asked_for_is_unknown_until_the_next_hit(
    world: World, wire: Wire, cut: Cut, settled: str
) -> None:
    wire.cut_at(COMMIT, cut, refuse=True)
    response = world.post("digest")
    assert response.status_code == 500
    assert response.json["outcome"] == "failed"
    assert response.json["error"] == "Outcome unknown"

    wire.mend()
    wait_for_the_server(world)
    body = world.post("digest").json
    assert body.get("reason", body["outcome"]) == settled
    assert world.notes == ["sent"]


def test_an_outcome_that_is_not_known_is_not_called_a_lost_lock(world: World, wire: Wire) -> None:
    wire.cut_at(COMMIT, Cut.AFTER, refuse=True)
    outcome = world.run("digest")
    assert isinstance(outcome, Failed)
    assert type(outcome.error) is OutcomeUnknown


def leave() -> None:
    raise SystemExit(1)


def test_a_worker_that_is_told_to_exit_while_it_asks_does_not_know_the_outcome(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gunicorn's handlers of SIGQUIT and SIGABRT raise SystemExit, wherever the worker is."""
    monkeypatch.setattr(transaction, "status_of", lambda *_: leave())
    wire.cut_at(COMMIT, Cut.AFTER)
    assert type(error_of(world.run("digest"))) is OutcomeUnknown

    wire.cut_at(COMMIT, Cut.AFTER)
    with world.app.app_context(), pytest.raises(OutcomeUnknown):
        world.cron.with_lock("cache", lambda _: world.note("locked"))
    assert world.notes == ["locked", "sent"]
    assert world.attempts() == []


def test_ctrl_c_while_it_asks_ends_the_process_all_the_same(
    world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "status_of", lambda *_: signal.raise_signal(signal.SIGINT))
    wire.cut_at(COMMIT, Cut.AFTER)
    with pytest.raises(KeyboardInterrupt):
        world.run("digest")
    assert world.notes == ["sent"]


def test_a_commit_swallowed_by_the_network_frees_the_slot_at_the_timeout(
    world: World, make_world: Callable[..., World], wire: Wire
) -> None:
    wire.cut_at(COMMIT, Cut.SILENCE)
    other = make_world()

    @other.cron.job("digest", every="1d")
    def digest() -> None:
        other.note("sent by another")

    def another_ran() -> bool:
        return isinstance(other.run("digest"), Ran)

    with ThreadPoolExecutor(1) as pool:
        cut_off = pool.submit(world.run, "digest")
        assert wire.was_cut.wait(30)
        try:
            assert not another_ran()
            wait_until(another_ran)
            assert not cut_off.done()
        finally:
            wire.hang_up()
        outcome = cut_off.result(30)

    assert isinstance(outcome, Failed), outcome
    assert world.notes == ["sent by another"]


def test_with_lock_says_that_work_was_kept_only_when_it_was(world: World, wire: Wire) -> None:
    def work(_: object) -> int:
        world.note("locked")
        return 7

    with world.app.app_context():
        wire.cut_at(COMMIT, Cut.AFTER)
        outcome = world.cron.with_lock("cache", work)
        assert isinstance(outcome, Ran)
        assert world.notes == ["locked"]

        wire.cut_at(COMMIT, Cut.BEFORE)
        with pytest.raises(LockLost):
            world.cron.with_lock("cache", work)
        wait_for_the_server(world)
        wire.cut_at(COMMIT, Cut.AFTER, refuse=True)
        with pytest.raises(OutcomeUnknown):
            world.cron.with_lock("cache", work)


def test_a_lost_record_of_a_failed_attempt_is_not_called_a_lost_lock(
    world: World, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    world.cron.job("failing", every="1d")(lambda: 1 / 0)
    wire.cut_at(COMMIT, Cut.BEFORE)

    outcome = world.run("failing")

    assert wire.was_cut.is_set()
    assert isinstance(outcome, Failed)
    assert type(outcome.error) is ZeroDivisionError
    assert world.attempts() == []
    [told] = [r.getMessage() for r in caplog.records if "could not be recorded" in r.getMessage()]
    assert "TransactionLost: A short transaction" in told
    assert "LockLost" not in told


def test_a_commit_that_postgres_answers_with_rollback_is_none(world: World) -> None:
    with (
        world.app.app_context(),
        GuardedTransaction(world.db.engine, timedelta(seconds=10), "me") as tx,
    ):
        with suppress(psycopg.errors.DivisionByZero):
            tx.driver.execute("SELECT 1/0")
        with pytest.raises(LockLost):
            tx.commit()
