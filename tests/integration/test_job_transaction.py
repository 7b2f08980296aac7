"""A job that ends the run's transaction, or leaves it aborted, has failed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from flask_cronlock import Ran, Reason
from flask_cronlock.exceptions import BrokenSlot, LockLost, TransactionEnded

from ..support.outcomes import LONG, elsewhere, error_of, reason_of, value_of
from ..support.worlds import World

Deed = Callable[[World], Any]


def commit_connection(world: World) -> None:
    world.db.session.connection().commit()


def roll_back_connection(world: World) -> None:
    world.db.session.connection().rollback()


def close_connection(world: World) -> None:
    world.db.session.connection().close()


def commit_transaction(world: World) -> None:
    world.db.session.connection().get_transaction().commit()  # type: ignore[union-attr]


def roll_back_transaction(world: World) -> None:
    world.db.session.connection().get_transaction().rollback()  # type: ignore[union-attr]


ROLLBACKS = [roll_back_connection, roll_back_transaction]


@pytest.mark.parametrize(
    "deed", [commit_connection, commit_transaction, close_connection, *ROLLBACKS]
)
def test_ending_the_transaction_through_sqlalchemy_is_refused(world: World, deed: Deed) -> None:
    meanwhile: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.mark()
        assert world.marks == 1
        world.note("first")
        try:
            deed(world)
        finally:
            meanwhile.append(elsewhere(lambda: world.run("digest")))

    error = error_of(world.run("digest"))

    assert isinstance(error, TransactionEnded)
    assert "db.session.commit()" in str(error)
    assert reason_of(meanwhile[0]) is Reason.ALREADY_RUNNING
    assert world.notes == world.runs() == []
    assert len(world.attempts()) == 1


@pytest.mark.parametrize("deed", [commit_connection, *ROLLBACKS])
def test_a_refusal_that_the_job_swallows_keeps_all_or_nothing(world: World, deed: Deed) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        with contextlib.suppress(TransactionEnded):
            deed(world)

    outcome = world.run("digest")

    kept = isinstance(outcome, Ran)
    assert world.notes == ["first"] * kept
    assert [state for *_, state in world.runs()] == ["done"] * kept
    assert world.database.advisory_locks() == 0


def test_a_refused_commit_of_the_transaction_itself_fails_also_where_it_is_swallowed(
    world: World,
) -> None:
    """SQLAlchemy ends its savepoints with it: nothing can be kept, and the slot stays open."""
    deeds = [commit_transaction]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first" if deeds else "second")
        if deeds:
            with contextlib.suppress(TransactionEnded):
                deeds.pop()(world)

    error_of(world.run("digest"))

    assert world.notes == world.runs() == []
    assert len(world.attempts()) == 1
    value_of(world.run("digest"))
    assert world.notes == ["second"]


def commit_by_text(world: World) -> None:
    world.db.session.execute(text("COMMIT"))


def commit_by_driver(world: World) -> None:
    world.db.session.connection().connection.driver_connection.commit()  # type: ignore[union-attr]


def commit_and_begin_again(world: World) -> None:
    world.db.session.execute(text("COMMIT"))
    world.db.session.execute(text("BEGIN"))
    world.db.session.execute(text("SAVEPOINT sa_savepoint_1"))
    world.note("second")


@pytest.mark.parametrize("deed", [commit_by_text, commit_by_driver, commit_and_begin_again])
@pytest.mark.filterwarnings("ignore:.*transaction.*:sqlalchemy.exc.SAWarning")
def test_a_raw_commit_breaks_the_slot_until_it_is_forced(world: World, deed: Deed) -> None:
    deeds: list[Deed] = [deed]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        if deeds:
            deeds.pop()(world)

    error = error_of(world.run("digest"))
    assert isinstance(error, TransactionEnded)
    assert "was kept, and the slot is broken" in str(error)
    assert world.notes == ["first"]
    assert [state for *_, state in world.runs()] == ["broken"]
    assert world.attempts() == []

    later = error_of(world.run("digest"))
    assert isinstance(later, BrokenSlot)
    assert "--force" in str(later)
    answer = world.post("digest")
    assert (answer.status_code, answer.json["error"]) == (500, "Slot broken")

    value_of(world.run("digest", force=True))
    assert [state for *_, state in world.runs()] == ["broken", "done"]


def test_a_claim_whose_raw_commit_was_followed_by_a_kill_is_broken_too(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.mark()

    value_of(world.run("digest"))
    world.database.query("UPDATE cronlock_run SET state = 'running', finished_at = NULL")

    for _ in range(2):
        assert isinstance(error_of(world.run("digest")), BrokenSlot)
    assert [state for *_, state in world.runs()] == ["broken"]
    assert world.database.value("SELECT error FROM cronlock_run") is not None
    assert world.marks == 1
    value_of(world.run("digest", force=True))


def test_a_raw_rollback_fails_and_the_slot_stays_open(world: World) -> None:
    deeds = ["ROLLBACK"]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        if deeds:
            world.db.session.execute(text(deeds.pop()))
            world.note("in another transaction")

    assert isinstance(error_of(world.run("digest")), LockLost)
    assert world.notes == world.runs() == []
    assert len(world.attempts()) == 1

    value_of(world.run("digest"))


def swallow_in_core(world: World) -> None:
    with contextlib.suppress(SQLAlchemyError):
        world.db.session.execute(text("SELECT 1/0"))


def swallow_and_write(world: World) -> None:
    swallow_in_core(world)
    with contextlib.suppress(SQLAlchemyError):
        world.note("second")


def swallow_in_flush(world: World) -> None:
    with contextlib.suppress(SQLAlchemyError), world.db.session.no_autoflush:
        world.db.session.add(world.note_class(text="bad"))
        world.db.session.flush()


@pytest.mark.parametrize("deed", [swallow_in_core, swallow_and_write, swallow_in_flush])
def test_a_swallowed_sql_error_fails_and_nothing_is_kept(world: World, deed: Deed) -> None:
    world.database.query("ALTER TABLE note ADD CHECK (text <> 'bad')")

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        deed(world)

    error = error_of(world.run("digest"))

    assert isinstance(error, LockLost)
    assert error.__cause__ is not None
    assert "swallowed" in str(error)
    assert world.notes == world.runs() == []
    assert world.database.advisory_locks() == 0


@pytest.mark.parametrize("sqlstate", ["23505", "40001", "55P03"])
def test_a_constraint_that_fails_at_commit_leaves_the_slot_open(
    world: World, sqlstate: str
) -> None:
    world.database.query(f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN RAISE EXCEPTION 'refused at commit' USING ERRCODE = '{sqlstate}'; END $$;
        CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW WHEN (NEW.text = 'bad') EXECUTE FUNCTION refuse()
    """)
    texts = ["bad", "good"]

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.mark()
        world.note(texts.pop(0))

    error = error_of(world.run("digest"))

    assert "refused at commit" in str(error)
    assert world.marks == 1
    assert world.notes == world.runs() == []
    assert "refused at commit" in world.attempts()[0][1]
    value_of(world.run("digest"))
    assert world.notes == ["good"]


def test_a_lost_lock_says_what_the_database_said(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        pid = world.db.session.execute(text("SELECT pg_backend_pid()")).scalar()
        world.database.query("SELECT pg_terminate_backend(%s)", pid)
        world.note("too late")

    error = error_of(world.run("digest"))

    assert isinstance(error, LockLost)
    assert isinstance(error.__cause__, SQLAlchemyError)
