"""What docs/celery-and-rq.md shows is run as it stands, with a real broker and real workers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..support.brokers import FILE, PAGE, USERS, Shop
from ..support.databases import ADVISORY_LOCKS, Database
from ..support.processes import wait_until
from ..support.redis_server import RedisServer, redis_server

HELD = f"SELECT count(*) FROM {ADVISORY_LOCKS} AND NOT granted"
FAILED = "SELECT count(*) FROM cronlock_attempt WHERE job = 'relay-outbox'"
LONGEST = 40
"""Lines of code that each broker needs at most."""


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(params=["Celery", "RQ"])
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, database: Database, redis: RedisServer
) -> Shop:
    redis.stop()
    redis.start()
    return Shop(request.param, tmp_path, database, redis)


@contextmanager
def held_before(database: Database, statement: str) -> Iterator[None]:
    """Have each *statement* wait until the end of the block."""
    with database.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        holder.execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN coalesce(NEW, OLD); END'"
        )
        holder.execute(
            f"CREATE TRIGGER hold BEFORE {statement} FOR EACH ROW EXECUTE FUNCTION hold()"
        )
        yield
        holder.execute("SELECT pg_advisory_unlock(1)")
        holder.execute("DROP FUNCTION hold CASCADE")


def relay(shop: Shop) -> int:
    """Run the relay once nobody else is at it, and return how many rows it sent."""
    answers = iter(lambda: shop.run("relay-outbox"), None)
    answer = next(answer for answer in answers if answer.get("reason") != "already running")
    assert not answer.get("skipped"), answer
    return int(answer["processed"])


def test_a_relay_that_is_killed_before_its_commit_has_all_sent_again_under_the_same_ids(
    shop: Shop,
) -> None:
    shop.run("daily-points")
    written = shop.outbox
    assert len(written) == USERS
    assert shop.sent() == []

    with held_before(shop.database, "DELETE ON outbox"):
        with shop.process("flask --app tasks cron run relay-outbox") as killed:
            wait_until(lambda: shop.database.value(HELD), 60)
            assert sorted(shop.sent()) == sorted(written)
            killed.end(signal.SIGKILL)
        assert shop.outbox == written
    assert relay(shop) == USERS

    assert shop.outbox == set()
    assert Counter(shop.sent()) == dict.fromkeys(written, 2)
    shop.work_off()
    assert shop.points == [1] * USERS


def test_without_a_broker_the_rows_stay_and_a_later_slot_sends_them(shop: Shop) -> None:
    shop.run("daily-points")
    written = shop.outbox
    shop.redis.stop()

    with shop.process(shop.commands[1]):
        wait_until(lambda: shop.database.value(FAILED), 60)
        assert shop.outbox == written
        shop.redis.start()
        wait_until(lambda: not shop.outbox, 90)

    assert sorted(shop.sent()) == sorted(written)
    shop.work_off()
    assert shop.points == [1] * USERS


def test_a_message_whose_worker_was_killed_in_the_middle_has_its_effect_once(shop: Shop) -> None:
    shop.run("daily-points")
    relay(shop)

    with shop.process(shop.commands[0]) as workers:
        with held_before(shop.database, 'UPDATE ON "user"'):
            wait_until(lambda: shop.database.value(HELD), 60)
            children = Path(f"/proc/{workers.pid}/task/{workers.pid}/children").read_text()
            for pid in children.split():
                os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: shop.points == [1] * USERS, 60)
        wait_until(lambda: not (shop.sent() or shop.in_hand()), 60)

    assert shop.points == [1] * USERS


def test_neither_needs_more_lines_than_fit_on_a_screen() -> None:
    files = FILE.findall(PAGE.read_text(encoding="utf-8"))
    assert [name for name, _ in files] == ["shop.py", "tasks.py", "tasks.py"]
    assert all(len(code.strip().splitlines()) <= LONGEST for _, code in files)
