"""No clock leads: rows that are deleted or falsified under running clocks cost no slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ..support.clocks import has_run, slots_of, ticking, without_gap
from ..support.databases import Database
from ..support.processes import wait_until
from ..support.worlds import World

DELETE = "DELETE FROM cronlock_job"
FALSIFY = "UPDATE cronlock_job SET known_since = now() + interval '1 hour'"


@pytest.mark.parametrize("deed", [DELETE, FALSIFY])
def test_clocks_whose_rows_are_not_theirs_any_more_run_each_slot_once(
    make_world: Callable[..., World], database: Database, deed: str
) -> None:
    begun: list[object] = []
    worlds = [make_world() for _ in range(2)]
    for world in worlds:
        world.cron.job("tick", every="1s", catch_up="all")(lambda run: begun.append(run.slot))

    with ticking(*worlds) as clocks:
        wait_until(lambda: database.query(deed) or has_run(worlds[0], "tick", 5), 60)
        clocks.stop()
        assert not clocks.log.troubles()

    slots = slots_of(worlds[0], "tick", "done")
    assert without_gap(slots)
    assert Counter(begun) == Counter(slots)
    assert slots_of(worlds[0], "tick", "missed", "broken", "running") == []
