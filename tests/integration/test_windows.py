"""From one success to the next no time is left out, and none is handed out twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from flask_cronlock import Failed, Outcome, Ran, Run, Skipped
from flask_cronlock.catchup import slots_due
from flask_cronlock.injected import injected

from ..support.clocks import know_jobs
from ..support.outcomes import value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

STEP = timedelta(minutes=20)
EVENING = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
"""Of the night in which Berlin's clock goes back."""


@dataclass
class Walk:
    """A job of every 20 minutes in Berlin, and a clock that the test moves."""

    world: World
    policy: dict[str, Any]
    moment: datetime = EVENING
    fails: bool = False
    windows: dict[datetime, datetime] = field(default_factory=dict)
    """The end of each window that a success was handed, and its start."""

    def __post_init__(self) -> None:
        how = {"schedule": "*/20 * * * *", "tz": "Europe/Berlin"} | self.policy
        self.world.cron.job("digest", **how)(self._body)
        self.job = self.world.cron.jobs.get("digest")

    def _body(self, run: Run) -> tuple[datetime, datetime]:
        if self.fails:
            raise ValueError("as asked")
        assert run.slot
        assert run.previous_slot
        self.handed = run.previous_slot.astimezone(UTC), run.slot.astimezone(UTC)
        return self.handed

    def run(self, **how: Any) -> Outcome:
        outcome = self.world.run("digest", **how)
        self._take_in(isinstance(outcome, Ran) and not how.get("force"))
        return outcome

    def post(self) -> None:
        answer = self.world.post("digest").get_json()
        self._take_in(answer.get("outcome") == "ran")

    def _take_in(self, ran: bool) -> None:
        if ran:
            start, end = self.handed
            assert end not in self.windows
            self.windows[end] = start

    def back(self, slots: int) -> datetime:
        """Return the slot that is so many before the newest."""
        newest = EVENING + (self.moment - EVENING) // STEP * STEP
        return newest - slots * STEP

    def due(self) -> list[datetime]:
        """Return the slots that a clock would run now, in its order."""
        schedule = self.job.schedule("UTC")
        assert schedule is not None
        first = min(self.windows, default=self.back(0)) - timedelta(seconds=1)
        due = slots_due(self.job, schedule, self.moment, first)
        return [slot.at for slot in due if slot.at.astimezone(UTC) not in self.windows]

    def assert_seamless(self) -> None:
        """Check the windows in the order of their slots, and that each slot is accounted for."""
        ends = sorted(self.windows)
        for earlier, later in pairwise(ends):
            assert self.windows[later] == earlier
        assert self.windows[ends[0]] == ends[0] - STEP
        rows = self.world.database.query(
            "SELECT scheduled_at, state FROM cronlock_run WHERE slot_key IS NOT NULL"
        )
        states = {at.astimezone(UTC): state for at, state in rows}
        assert {at for at, state in states.items() if state == "done"} == set(ends)
        between = {ends[0] + number * STEP for number in range((ends[-1] - ends[0]) // STEP)}
        assert between - set(ends) <= {at for at, state in states.items() if state == "missed"}


@pytest.fixture
def walks(world: World) -> Iterator[Any]:
    """Make the walk of a policy; its clock is in the place of the database's."""
    made: list[Walk] = []
    with world.app.app_context():
        engine = world.db.engine
    with injected(engine, lambda: made[0].moment):

        def make(**policy: Any) -> Walk:
            made.append(Walk(world, policy))
            return made[0]

        yield make


def step(walk: Walk, source: random.Random) -> None:
    """Move the clock on by some slots, and try what may be tried in that time."""
    walk.moment += source.choice([0, 1, 1, 2, 5, 9]) * STEP + source.random() * STEP
    for action in source.choices(["hit", "post", "named", "failed", "forced"], k=2):
        walk.fails = action == "failed"
        match action:
            case "post":
                walk.post()
            case "forced":
                value_of(walk.run(force=True))
            case "named":
                slot = walk.back(source.randrange(8))
                if walk.policy["catch_up"] == "all" or slot > max(walk.windows, default=EVENING):
                    walk.run(slot=slot)
            case _:
                assert isinstance(walk.run(), Failed if walk.fails else Ran | Skipped) or (
                    walk.fails and walk.back(0) in walk.windows
                )
    walk.fails = False


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("max_lateness", [None, "90m"])
@pytest.mark.parametrize("catch_up", ["latest", "none"])
def test_a_run_takes_all_since_the_last_one_that_ran(
    walks: Any, catch_up: str, max_lateness: str | None, seed: int
) -> None:
    walk, source = walks(catch_up=catch_up, max_lateness=max_lateness), random.Random(seed)
    for _ in range(25):
        step(walk, source)
    walk.run()
    walk.assert_seamless()
    assert len(walk.windows) > 10


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("limits", [{}, {"max_catch_up": 3}, {"max_lateness": "90m"}])
def test_where_all_are_caught_up_each_takes_its_own_time_and_the_oldest_what_went_by(
    walks: Any, limits: dict[str, Any], seed: int
) -> None:
    walk, source = walks(catch_up="all", **limits), random.Random(seed)
    know_jobs(walk.world, EVENING)
    for _ in range(25):
        step(walk, source)
        for slot in walk.due():
            walk.run(slot=slot)
    walk.assert_seamless()
    assert len(walk.windows) > 25
    lone = [end for end, start in walk.windows.items() if end - start == STEP]
    assert (len(lone) == len(walk.windows)) == (not limits)


def test_a_forced_run_is_handed_the_time_of_its_slot_again_and_takes_none(walks: Any) -> None:
    walk = walks(catch_up="latest")
    for passed in (0, 3):
        walk.moment += passed * STEP
        walk.run()
    again = value_of(walk.run(force=True))
    assert again == (walk.back(3), walk.back(0))
    walk.moment += STEP
    assert value_of(walk.run()) == (walk.back(1), walk.back(0))


def test_an_older_slot_that_is_named_after_a_newer_one_ran_is_handed_its_share_once_more(
    walks: Any,
) -> None:
    """The newer run took all since the last success before it, as it could not know.

    Whoever names slots, and lets them come out of order, reads the window as "since the last
    success before this slot": nothing is left out, but the older share is handed out twice.
    """
    walk = walks(catch_up="latest", max_lateness="1d")
    walk.run()
    walk.moment += 4 * STEP
    assert value_of(walk.run()) == (walk.back(4), walk.back(0))

    assert value_of(walk.run(slot=walk.back(2))) == (walk.back(4), walk.back(2))
    assert value_of(walk.run(slot=walk.back(1))) == (walk.back(2), walk.back(1))

    walk.moment += STEP
    assert value_of(walk.run()) == (walk.back(1), walk.back(0))


def test_where_all_are_caught_up_slots_may_come_in_any_order(walks: Any) -> None:
    walk = walks(catch_up="all")
    know_jobs(walk.world, EVENING)
    walk.run()
    walk.moment += 4 * STEP
    for number in (0, 2, 3, 1):
        assert value_of(walk.run(slot=walk.back(number))) == (
            walk.back(number + 1),
            walk.back(number),
        )
    walk.assert_seamless()


def test_where_no_clock_catches_all_up_a_hit_takes_all_since_the_last_one(walks: Any) -> None:
    walk = walks(catch_up="all")
    walk.run()
    walk.moment += 4 * STEP
    assert value_of(walk.run()) == (walk.back(4), walk.back(0))


def test_slots_of_before_a_schedule_was_changed_have_no_run_of_their_own(walks: Any) -> None:
    walk = walks(catch_up="all")
    walk.run()
    walk.moment += 4 * STEP
    know_jobs(walk.world, walk.back(1))
    assert value_of(walk.run()) == (walk.back(4), walk.back(0))


def test_where_all_are_caught_up_a_slot_that_fails_until_it_is_too_late_leaves_its_own_time_open(
    walks: Any,
) -> None:
    """The runs after it were promised that it would have a run of its own."""
    walk = walks(catch_up="all", max_catch_up=2)
    know_jobs(walk.world, EVENING)
    walk.run()
    walk.moment += 2 * STEP
    walk.fails = True
    assert isinstance(walk.run(slot=walk.back(1)), Failed)
    walk.fails = False
    value_of(walk.run())

    walk.moment += 2 * STEP
    assert isinstance(walk.run(slot=walk.back(3)), Skipped)
    assert value_of(walk.run(slot=walk.back(1))) == (walk.back(2), walk.back(1))
