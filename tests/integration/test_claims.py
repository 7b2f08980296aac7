"""The claim, not the lock, is what makes a slot run once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from flask_cronlock import Failed, Outcome, Ran, Reason, Skipped, runner
from flask_cronlock.exceptions import BrokenSlot, Unavailable

from ..support.bodies import Gate, running
from ..support.outcomes import error_of
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def add_digest(world: World, gate: Gate, error: Exception | None = None, **options: str) -> None:
    """Register a job whose first body holds at the gate and then raises *error*, if any."""

    @world.cron.job("digest", every="1d", **options)
    def digest() -> None:
        first = not gate.entered.is_set()
        world.mark()
        world.note("first" if first else "second")
        if first:
            gate.hold()
            if error is not None:
                raise error


def waits_for_the_claim(world: World) -> bool:
    return bool(world.database.value("SELECT count(*) FROM pg_locks WHERE NOT granted"))


@pytest.mark.parametrize("timeout", ["60s", "1s"])
def test_another_lock_key_does_not_let_a_slot_run_twice(
    make_world: Callable[..., World],
    gate: Gate,
    another_release: Callable[[], None],
    timeout: str,
) -> None:
    """The loser waits for the winner's claim: two seconds at most, and never past its timeout."""
    old, new = make_world(), make_world()
    add_digest(old, gate)
    add_digest(new, gate, timeout=timeout)
    with running(old, "digest", gate) as winner:
        another_release()
        loser = new.run("digest")
        assert not winner.done()
    assert isinstance(loser, Skipped), loser
    assert loser.reason is Reason.ALREADY_RUNNING
    assert isinstance(winner.result(), Ran)
    assert old.marks == 1


@pytest.mark.parametrize("error", [None, ValueError("as asked")], ids=["done", "failed"])
def test_a_loser_that_waits_for_the_claim_learns_how_the_winner_ended(
    world: World, gate: Gate, another_release: Callable[[], None], error: Exception | None
) -> None:
    add_digest(world, gate, error)
    with ThreadPoolExecutor(1) as pool, running(world, "digest", gate) as winner:
        another_release()
        waiting = pool.submit(world.run, "digest")
        wait_until(lambda: waits_for_the_claim(world))
        gate.open()
        first: Outcome = winner.result()
        second: Outcome = waiting.result()
    if error is None:
        assert isinstance(first, Ran)
        assert isinstance(second, Skipped)
        assert second.reason is Reason.ALREADY_RAN
        [(ended,)] = world.database.query("SELECT finished_at FROM cronlock_run")
        assert (second.ran_at, second.next_slot) == (ended, first.next_slot)
        assert second.next_slot is not None
        assert world.notes == ["first"]
    else:
        assert isinstance(first, Failed)
        assert isinstance(second, Ran)
        assert world.notes == ["second"]
    assert len(world.runs()) == 1


def test_a_loser_that_waits_for_a_claim_which_breaks_is_not_told_that_it_ran(
    world: World, gate: Gate, another_release: Callable[[], None]
) -> None:
    """A raw COMMIT makes the winner's claim visible, and its end is not known yet."""
    after = Gate()

    @world.cron.job("digest", every="1d")
    def digest() -> None:
        world.mark()
        gate.hold()
        world.db.session.execute(world.db.text("COMMIT"))
        after.hold()

    with ThreadPoolExecutor(1) as pool, running(world, "digest", gate) as winner:
        another_release()
        waiting = pool.submit(world.run, "digest")
        try:
            wait_until(lambda: waits_for_the_claim(world))
            gate.open()
            second = waiting.result(60)
        finally:
            after.open()
        first = winner.result(60)
    assert type(error_of(second)) is BrokenSlot
    assert isinstance(first, Failed)
    assert [state for *_, state in world.runs()] == ["broken"]
    assert world.marks == 1


def test_jobs_that_share_a_lock_key_do_not_share_claims(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "lock_texts", lambda *_: ["the same for all"])
    add_digest(world, gate)

    @world.cron.job("other", every="1d")
    def other() -> None: ...

    with running(world, "digest", gate):
        outcome = world.run("other")
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert isinstance(world.run("other"), Ran)


def test_a_slot_whose_history_was_pruned_is_not_open_again(world: World) -> None:
    @world.cron.job("digest", every="1h", max_lateness="7d")
    def digest() -> None:
        world.mark()

    slot = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    assert isinstance(world.run("digest", slot=slot), Ran)
    world.database.query("DELETE FROM cronlock_run")
    world.database.query(
        "INSERT INTO cronlock_job (namespace, job, pruned_through) VALUES ('', 'digest', %s)", slot
    )

    for pruned in (slot, slot - timedelta(hours=1)):
        outcome = world.run("digest", slot=pruned)
        assert isinstance(outcome, Skipped)
        assert outcome.reason is Reason.ALREADY_RAN
    assert isinstance(world.run("digest", slot=slot + timedelta(hours=1)), Ran)
    assert isinstance(world.run("digest", slot=slot, force=True), Ran)


def test_a_hundred_skips_add_no_row(world: World) -> None:
    @world.cron.job("digest", every="1d")
    def digest() -> None: ...

    def rows() -> list[tuple[object, ...]]:
        return world.database.query(
            "SELECT (SELECT count(*) FROM cronlock_run), (SELECT count(*) FROM cronlock_attempt),"
            " (SELECT count(*) FROM cronlock_job)"
        )

    assert isinstance(world.run("digest"), Ran)
    before = rows()
    assert all(isinstance(world.run("digest"), Skipped) for _ in range(100))
    assert rows() == before == [(1, 0, 0)]


def test_a_skip_takes_two_statements_and_a_win_four(world: World) -> None:
    """Besides BEGIN and the end: the limits, the lock; and then the claim, and that it is done."""
    sent: list[str] = []
    world.cron.job("digest", every="1d")(lambda: None)
    with world.app.app_context():
        event.listen(world.db.engine, "before_cursor_execute", lambda *about: sent.append(about[2]))
        assert isinstance(world.cron.run("digest"), Ran)
        won = len(sent)
        assert isinstance(world.cron.run("digest"), Skipped)
    assert (won, len(sent) - won) == (4, 2), sent


def test_a_time_that_is_up_before_the_claim_is_no_run_and_no_bare_database_error(
    world: World,
) -> None:
    @world.cron.job("digest", every="1d", timeout="0.2s")
    def digest() -> None:
        world.mark()

    with world.database.connect() as migration, migration.transaction():
        migration.execute("LOCK TABLE cronlock_run IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable):
            world.run("digest")
    assert world.marks == 0
    assert isinstance(world.run("digest"), Ran)
