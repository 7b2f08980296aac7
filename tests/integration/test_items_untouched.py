"""``flask cron items``: what is done, or somebody's yet, is not changed by any of its options."""

from __future__ import annotations

import pytest

from flask_cronlock.limits import SHORT_TIMEOUT
from flask_cronlock.queue.docket import Docket
from flask_cronlock.queue.records import State
from flask_cronlock.transaction import GuardedTransaction

from ..support.clocks import state_of
from ..support.commands import cron
from ..support.tasks import records, rows
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

ITEM = """
INSERT INTO cronlock_item
    (key, namespace, task, state, attempts, in_doubt, instance, started_at, args)
VALUES ('key', '', 'send', %s, 3, false, 'tests', now(), '{"items": [{}]}')
"""


@pytest.fixture(params=["done", "started", "waiting"])
def state(world: World, request: pytest.FixtureRequest) -> str:
    world.database.query(ITEM, request.param)
    return str(request.param)


def test_it_is_not_deferred_anew_by_its_key(world: World, state: str) -> None:
    result = cron(world, "items", "--retry", "key")

    assert result.exit_code != 0
    assert "'key' is neither in doubt nor failed" in result.stderr
    assert rows(world) == []
    assert records(world, "state, attempts") == [(state, 3)]


def test_it_is_not_among_all_that_are_deferred_anew(world: World, state: str) -> None:
    with world.app.app_context():
        engine = world.db.engine
        with GuardedTransaction(engine, SHORT_TIMEOUT, "tests") as tx:
            assert Docket(tx, state_of(world)).retry_all(list(State)) == 0


@pytest.mark.parametrize("state", ["done"], indirect=True)
def test_what_is_done_cannot_be_settled(world: World, state: str) -> None:
    result = cron(world, "items", "--settle", "key")

    assert result.exit_code != 0
    assert "'key' is done, or no item" in result.stderr
