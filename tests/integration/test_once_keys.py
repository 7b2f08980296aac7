"""Once for a key: for consumers that a message may reach twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy.orm import Session

from flask_cronlock import Run
from flask_cronlock.exceptions import OnceError, TablesMissing

from ..support.bodies import Gate
from ..support.outcomes import LONG, elsewhere, value_of
from ..support.tasks import records, rows, work_all
from ..support.worlds import World, world_on


@pytest.fixture
def world(entered_world: World) -> World:
    return entered_world


def consume(world: World, key: str = "mail 7") -> bool:
    """Do what is to be done once for a message."""
    with world.app.app_context():
        first = world.cron.once(key)
        if first:
            world.note("sent")
        world.db.session.commit()
        return first


def test_the_first_one_is_told_so_and_the_others_are_not(world: World) -> None:
    assert consume(world)
    assert not consume(world)
    assert not elsewhere(lambda: consume(world))
    assert consume(world, "mail 8")
    assert world.notes == ["sent", "sent"]


def test_twice_in_one_transaction_is_once(world: World) -> None:
    assert world.cron.once("mail 7")
    assert not world.cron.once("mail 7")


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_at_a_time_the_second_waits_for_the_end_of_the_first(
    world: World, gate: Gate, commits: bool
) -> None:
    def slow() -> bool:
        with world.app.app_context():
            first = world.cron.once("mail 7")
            world.note("slow")
            gate.hold()
            if commits:
                world.db.session.commit()
            return first

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(slow)
        try:
            assert gate.entered.wait(60), one
            two = pool.submit(consume, world)
            assert not two.done()
        finally:
            gate.open()
        assert one.result(60)
        assert two.result(60) is not commits
    assert world.notes == (["slow"] if commits else ["sent"])


def test_what_is_rolled_back_was_not_seen(world: World) -> None:
    assert world.cron.once("mail 7")
    world.db.session.rollback()
    with suppress(ValueError), world.db.session.begin_nested():
        assert world.cron.once("mail 7")
        raise ValueError
    assert consume(world)


def test_a_session_that_is_given_decides(world: World) -> None:
    with Session(world.db.engine) as session:
        assert world.cron.once("mail 7", session)
        session.commit()
    assert not world.cron.once("mail 7", world.db.session)
    assert not world.cron.once("mail 7")


def test_a_session_that_is_given_decides_whatever_its_truth(world: World) -> None:
    class Untrue(Session):
        def __bool__(self) -> bool:
            return False

    with Untrue(world.db.engine) as session:
        assert world.cron.once("mail 7", session)
        assert session.in_transaction()
        assert not world.db.session().in_transaction()


def test_namespaces_do_not_share_keys(world: World) -> None:
    with world_on(world.database, CRONLOCK_NAMESPACE="other") as other:
        assert consume(world)
        assert consume(other)


def test_a_key_is_no_item_and_an_item_is_no_key(world: World) -> None:
    keys: list[str] = []
    world.cron.task("send", key="text")(lambda item, text: keys.append(item.key))
    world.cron.job("once", every=LONG)(lambda run: run.defer("send", text="a"))
    value_of(world.run("once"))
    [row] = rows(world)
    origin = row.args["origin"]
    assert world.cron.once(f"{origin['scope'].partition('/')[2]}/send/a")
    world.db.session.commit()
    work_all(world)
    assert len(keys) == 1
    assert len(records(world)) == 2


def test_a_job_and_a_task_may_ask_too(world: World) -> None:
    @world.cron.job("asking", every=LONG)
    def asking(run: Run) -> bool:
        return world.cron.once("mail 7")

    assert value_of(world.run("asking")) is True
    assert value_of(world.run("asking", force=True)) is False


@pytest.mark.parametrize("key", ["", "a" * 501, "a\0", "\ud800", None, 7, b"a", ["a"]])
def test_a_key_that_cannot_be_kept_is_refused(world: World, key: Any) -> None:
    world.note("before")
    with pytest.raises(OnceError, match="is no key"):
        world.cron.once(key)
    world.db.session.commit()
    assert world.notes == ["before"]


def test_where_its_table_is_missing_the_cure_is_told(world: World) -> None:
    world.db.session.execute(world.db.text("DROP TABLE cronlock_item"))
    with pytest.raises(TablesMissing, match="flask cron init-db"):
        world.cron.once("mail 7")
    world.db.session.rollback()


def test_the_longest_key_is_kept(world: World) -> None:
    assert consume(world, "\U0001f600" * 500)
    assert not consume(world, "\U0001f600" * 500)
