"""The network swallows a message of a run, and all after it, and closes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from ..support.databases import Server, fresh_database
from ..support.wire_cuts import report, stage
from ..support.wire_figures import adding_nothing, open_here
from ..support.wire_line import Cut
from ..support.wire_plays import DECISIVE, Brief, Told
from ..support.wire_routes import BEFORE_POOLER, BEHIND_POOLER, DIRECT

LANES = 15
"""How many runs wait at once, each in a database of its own."""


@pytest.mark.parametrize(
    ("way", "about"), [(DIRECT, []), (BEFORE_POOLER, DECISIVE), (BEHIND_POOLER, DECISIVE)]
)
def test_what_is_told_at_last_is_true(
    postgres: Server, way: str, about: Iterable[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    def swallow(lane: int) -> Counter[Told]:
        with fresh_database(postgres) as database, stage(way, database) as made:
            play = Brief(made.world)
            places = made.places(play, *about)[lane::LANES]
            return made.cut_at(play, product(places, [Cut.SILENCE]))

    told: Counter[Told] = Counter()
    with adding_nothing(open_here), ThreadPoolExecutor(LANES) as pool:
        for each in pool.map(swallow, range(LANES)):
            told += each
    report(capsys, f"{Brief.name}, {way}, swallowed", told)
    assert all(told[each] for each in (Told.KEPT, Told.NOTHING))
