"""Who does not get the lock is answered at once: nobody waits, and nobody runs later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Ran, Reason, Skipped
from flask_cronlock.exceptions import NestedRun

from ..support.bodies import Gate, running
from ..support.instances import at_once
from ..support.worlds import World


@pytest.fixture
def gate() -> Gate:
    return Gate()


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


def test_a_forced_run_does_not_get_past_the_lock(world: World, gate: Gate) -> None:
    with running(world, "digest", gate) as winner:
        outcome = world.run("digest", force=True)
        assert not winner.done()
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING
    assert world.marks == 1


def test_a_lock_by_name_and_a_job_of_that_name_exclude_each_other(world: World, gate: Gate) -> None:
    with running(world, "digest", gate) as winner, world.app.app_context():
        outcome = world.cron.with_lock("digest", lambda _: world.mark())
        assert not winner.done()
    assert isinstance(outcome, Skipped)
    assert outcome.reason is Reason.ALREADY_RUNNING


def test_a_job_that_triggers_itself_is_refused_and_runs_once(world: World) -> None:
    @world.cron.job("recursive", every="1d")
    def recursive() -> None:
        world.mark()
        with pytest.raises(NestedRun, match="plain function"):
            world.cron.run("recursive")

    assert isinstance(world.run("recursive"), Ran)
    assert world.marks == 1
