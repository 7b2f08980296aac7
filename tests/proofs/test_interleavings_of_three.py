"""Three runs, each statement a step, in random orders of their statements."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ..support.databases import Server, fresh_database
from ..support.interleavings import NEWEST, OLDER, Theatre, Wish, theatre_on
from ..support.orders import random_order
from ..support.verdicts import check

ORDERS, AT_A_TIME = 500, 100
SEEDS = [range(first, first + AT_A_TIME) for first in range(0, ORDERS, AT_A_TIME)]


@pytest.fixture(scope="module", params=[False, True], ids=["new job", "known job"])
def theatre(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Theatre]:
    """Of a known job the older slot can be missed, and is then recorded by the newer one's run."""
    with fresh_database(postgres) as database, theatre_on(database) as made:
        if request.param:
            made.know_the_job()
        yield made


def some_wish(chance: random.Random) -> Wish:
    """Return a wish for one of two slots, by one of two releases, that may go wrong."""
    return Wish(
        slot=chance.choice([NEWEST, NEWEST, OLDER]),
        release=chance.choice(["", "", "v2:"]),
        renamed=chance.random() < 0.25,
        forced=chance.random() < 0.15,
        fails=chance.random() < 0.25,
    )


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_three_runs_in_random_orders(theatre: Theatre, seeds: range) -> None:
    for seed in seeds:
        chance = random.Random(f"{theatre.knows} {seed}")
        wishes = [some_wish(chance) for _ in range(3)]
        try:
            check(theatre.play(wishes, random_order(seed)))
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
