"""Who does not get the lock is answered at once: nobody waits, and nobody runs later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Ran

from ..support.bodies import Gate, running
from ..support.instances import at_once
from ..support.worlds import World


@pytest.fixture
def world(make_world: Callable[..., World], gate: Gate) -> World:
    """A world with a slot's job and a job without slots; the bodies of both hold at the gate."""
    world = make_world(engine_options={"pool_size": 25})

    @world.cron.job("digest", every="1d")
    @world.cron.job("warm-cache")
    def work() -> None:
        world.mark()
        gate.hold()

    return world


@pytest.mark.parametrize("job", ["digest", "warm-cache"])
def test_nineteen_losers_are_answered_while_the_winner_is_at_work(
    world: World, gate: Gate, job: str
) -> None:
    with running(world, job, gate) as winner:
        answers = at_once([lambda: world.post(job)] * 19)
        assert not winner.done()

    assert isinstance(winner.result(), Ran)
    assert [answer.json["reason"] for answer in answers] == ["already running"] * 19
    assert all(answer.json["held_by"] and answer.json["held_since"] for answer in answers)
    assert world.marks == 1
    assert world.database.advisory_locks() == 0
