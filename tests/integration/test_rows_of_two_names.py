"""A slot that has a row under two names of its job."""

from __future__ import annotations

import pytest

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.history import EVERY, put
from ..support.outcomes import reason_of
from ..support.worlds import World


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
