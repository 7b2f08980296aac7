"""The network swallows a message of a run, and all after it, and closes nothing."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from ..support.databases import Server, fresh_database
from ..support.wire import Cut
from ..support.wire_cuts import report, stage
from ..support.wire_plays import Brief, Told
from ..support.wire_routes import DIRECT

LANES = 12
"""How many runs wait at once, each in a database of its own."""


def test_what_is_told_at_last_is_true(postgres: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def swallow(lane: int) -> Counter[Told]:
        with fresh_database(postgres) as database, stage(DIRECT, database) as made:
            play = Brief(made.world)
            places = made.places(play)[lane::LANES]
            return made.cut_at(play, product(places, [Cut.SILENCE]))

    told: Counter[Told] = Counter()
    with ThreadPoolExecutor(LANES) as pool:
        for each in pool.map(swallow, range(LANES)):
            told += each
    report(capsys, f"{Brief.name}, {DIRECT}, swallowed", told)
    assert all(told[each] for each in (Told.KEPT, Told.NOTHING))
