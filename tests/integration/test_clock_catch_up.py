"""What a clock makes of the slots that began while no clock was there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from flask_cronlock import Run, lookout

from ..support.clocks import (
    Hands,
    Log,
    count_looks,
    hands_of,
    know_jobs,
    slots_of,
    ticking,
)
from ..support.outcomes import value_of
from ..support.processes import wait_until
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)

one_clock = pytest.mark.parametrize("worlds", [1], indirect=True, ids=["one clock"])


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clocks look often, since their time is moved by hand."""
    monkeypatch.setattr(lookout, "LOOK", 0.05)
    monkeypatch.setattr(lookout, "RECHECK", 0.05)


@pytest.fixture(params=[1, 2], ids=["one clock", "two clocks"])
def worlds(request: pytest.FixtureRequest, make_world: Callable[..., World]) -> list[World]:
    return [make_world() for _ in range(request.param)]


@pytest.fixture
def world(worlds: list[World]) -> World:
    return worlds[0]


@pytest.fixture
def hands(worlds: list[World]) -> Iterator[Hands]:
    with hands_of(at(2), *worlds) as hands:
        yield hands


def ran(world: World) -> list[datetime]:
    """Return the slots in the order in which they ran."""
    rows = world.database.query("SELECT text FROM note ORDER BY ctid")
    return [datetime.fromisoformat(text) for (text,) in rows]


def register(worlds: Sequence[World], **how: object) -> None:
    """Give each world the one job, each run of which is noted."""
    for world in worlds:

        @world.cron.job("digest", **{"schedule": "*/5 * * * *", **how})
        def digest(run: Run, world: World = world) -> None:
            world.note(str(run.slot))


def away(worlds: Sequence[World], hands: Hands) -> None:
    """Let the clocks run at 12:02, and again from 13:01 until they have nothing to do."""
    know_jobs(worlds[0], at(-1))
    for minute in (2, 61):
        hands.now = at(minute)
        with ticking(*worlds) as clocks:
            settled(worlds, clocks.log)
        assert not clocks.log.troubles()


def settled(worlds: Sequence[World], log: Log) -> None:
    """Wait until all clocks have looked on and fired nothing more."""
    looks, fired = [count_looks(world) for world in worlds], -1
    while len(log.of("clock_fired")) > fired:
        fired = len(log.of("clock_fired"))
        for looked in looks:
            looked(6)


def test_latest_runs_the_newest_slot_once(worlds: list[World], hands: Hands) -> None:
    register(worlds)
    away(worlds, hands)
    assert ran(worlds[0]) == [at(0), at(60)]
    assert slots_of(worlds[0], "digest", "missed") == [at(m) for m in range(5, 60, 5)]


def test_all_runs_the_newest_max_catch_up_oldest_first(worlds: list[World], hands: Hands) -> None:
    register(worlds, catch_up="all", max_catch_up=5)
    away(worlds, hands)
    assert ran(worlds[0]) == [at(0), *(at(m) for m in range(40, 61, 5))]
    assert slots_of(worlds[0], "digest", "missed") == [at(m) for m in range(5, 40, 5)]


def test_none_runs_nothing_until_the_next_slot(worlds: list[World], hands: Hands) -> None:
    register(worlds, catch_up="none")
    away(worlds, hands)
    assert ran(worlds[0]) == []
    with ticking(*worlds) as clocks:
        settled(worlds, clocks.log)
        hands.now = at(65)
        wait_until(lambda: ran(worlds[0]) == [at(65)])
        settled(worlds, clocks.log)
    assert ran(worlds[0]) == [at(65)]


@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_a_job_that_no_clock_knew_is_not_caught_up_but_runs_when_hit(
    worlds: list[World], hands: Hands, catch_up: str
) -> None:
    register(worlds, catch_up=catch_up)
    with ticking(*worlds) as clocks:
        settled(worlds, clocks.log)
        assert worlds[0].runs() == []
        hands.now = at(3)
        value_of(worlds[0].run("digest"))
        hands.now = at(5)
        wait_until(lambda: ran(worlds[0]) == [at(0), at(5)])
    assert worlds[0].database.value("SELECT known_since FROM cronlock_job") == at(2)
    assert slots_of(worlds[0], "digest", "missed") == []


@one_clock
def test_three_days_of_minutes_are_caught_up_to_their_end(world: World, hands: Hands) -> None:
    register([world], schedule="* * * * *", catch_up="all")
    hands.now = at(0)
    know_jobs(world, NOON - timedelta(days=3))
    with ticking(world) as clocks:
        wait_until(lambda: len(ran(world)) == 100, seconds=120)
        settled([world], clocks.log)
    assert ran(world) == [at(m) for m in range(-99, 1)]
    # One run records no more than a hundred.
    assert slots_of(world, "digest", "missed") == [at(m) for m in range(-199, -99)]


@one_clock
def test_since_when_a_job_is_known_outlasts_the_clock(world: World, hands: Hands) -> None:
    register([world], catch_up="all")
    for minute in (2, 3, 11):
        hands.now = at(minute)
        with ticking(world) as clocks:
            settled([world], clocks.log)
    assert ran(world) == [at(5), at(10)]


@one_clock
@pytest.mark.parametrize("changed", [{"schedule": "*/5 * * * 1-6"}, {"tz": "Europe/Berlin"}])
def test_a_changed_schedule_is_caught_up_only_from_its_change_on(
    make_world: Callable[..., World], world: World, hands: Hands, changed: dict[str, str]
) -> None:
    new = make_world()
    register([world], catch_up="all")
    register([new], catch_up="all", **changed)
    know_jobs(world, at(-1))
    with ticking(world):
        wait_until(lambda: ran(world) == [at(0)])
    with hands_of(at(11), new) as later, ticking(new) as clocks:
        settled([new], clocks.log)
        assert ran(new) == [at(0)]
        assert new.database.value("SELECT known_since FROM cronlock_job") == at(11)
        later.now = at(15)
        wait_until(lambda: ran(new) == [at(0), at(15)])
    assert slots_of(new, "digest", "missed") == []


@one_clock
def test_a_clock_set_forward_and_back_loses_no_slot_and_doubles_none(
    world: World, hands: Hands
) -> None:
    register([world])
    year = 366 * 24 * 60
    know_jobs(world, at(-60))
    with ticking(world) as clocks:
        for minute in (1, year, 2, 5, 10):
            hands.now = at(minute)
            settled([world], clocks.log)
    assert ran(world) == [at(0), at(year), at(5), at(10)]
    assert not clocks.log.troubles()
