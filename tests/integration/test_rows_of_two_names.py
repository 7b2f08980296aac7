"""A slot that has a row under two names of its job."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_cronlock import Reason
from flask_cronlock.exceptions import BrokenSlot

from ..support.databases import Database
from ..support.history import EVERY, put
from ..support.outcomes import error_of, reason_of
from ..support.ownlocks import LOOK_HERE_FIRST, let_go, make_waiting, one_waits
from ..support.processes import wait_until
from ..support.worlds import World, world_on


@pytest.mark.parametrize("ran_as", ["digest", "daily-digest"])
@pytest.mark.parametrize("broken_first", [True, False])
def test_it_has_run_if_it_ran_under_one_of_them(
    world: World, database: Database, ran_as: str, broken_first: bool
) -> None:
    world.cron.job("daily-digest", every=EVERY, previous_names=["digest"])(world.mark)
    broken_as = {"digest": "daily-digest", "daily-digest": "digest"}[ran_as]
    rows = [(broken_as, "broken"), (ran_as, "done")]
    for name, state in rows if broken_first else reversed(rows):
        put(database, [0], state, job=name)

    assert reason_of(world.run("daily-digest")) is Reason.ALREADY_RAN
    assert world.marks == 0


def test_one_that_broke_while_the_lock_was_asked_for_leaves_no_claim_beside_it(
    world: World, database: Database
) -> None:
    world.cron.job("mail-digest", every=EVERY)(
        lambda: world.db.session.execute(world.db.text("COMMIT"))
    )
    with world_on(database, engine_options=LOOK_HERE_FIRST) as late, ThreadPoolExecutor(1) as pool:
        late.cron.job("mail-digest", every=EVERY, previous_names=["digest"])(late.mark)
        make_waiting(database)
        outcome = pool.submit(late.run, "mail-digest")
        wait_until(lambda: one_waits(database))
        world.run("mail-digest")
        let_go(database)

        assert isinstance(error_of(outcome.result(60)), BrokenSlot)
    assert [(job, state) for job, _, state in world.runs()] == [("mail-digest", "broken")]
    assert world.marks == 0
