"""Which slots of a job are due, and which were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock.catchup import is_too_late, slots_due, slots_missed
from flask_cronlock.config import Config
from flask_cronlock.jobs import Job
from flask_cronlock.planning import Plan
from flask_cronlock.registration import make_job
from flask_cronlock.schedule import Schedule, Slot

from ..support.slots import named, work_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def job_of(**policy: Any) -> tuple[Job, Schedule]:
    """Return a job of every minute."""
    job = make_job(lambda: None, "digest", **({"every": "1m"} | policy))
    schedule = job.schedule("UTC")
    assert schedule is not None
    return job, schedule


def minutes(slots: list[Slot]) -> list[int]:
    """Return how many minutes before noon each slot is."""
    return [round((NOON - slot.at).total_seconds() / 60) for slot in slots]


def missed(since: int, at: int = 0, **policy: Any) -> list[int]:
    """Return what a run of the slot *at* finds missed since then; all in minutes before noon."""
    job, schedule = job_of(**policy)
    slot = named(schedule, NOON - at * MINUTE)
    assert slot is not None
    return minutes(slots_missed(job, schedule, slot, NOON, NOON - since * MINUTE))


def due(after: int | None = None, **policy: Any) -> list[int]:
    job, schedule = job_of(**policy)
    since = None if after is None else NOON - after * MINUTE
    return minutes(slots_due(job, schedule, NOON, since))


@pytest.mark.parametrize("catch_up", ["latest", "none"])
def test_all_between_the_last_run_and_this_one_were_missed(catch_up: str) -> None:
    assert missed(4, catch_up=catch_up) == [1, 2, 3]
    assert missed(4, at=2, catch_up=catch_up) == [3]
    assert missed(1, catch_up=catch_up) == []
    assert missed(2, at=2, catch_up=catch_up) == []


def test_it_matters_not_that_they_could_still_be_run_by_name() -> None:
    assert missed(4, max_lateness="1h") == [1, 2, 3]


def test_no_more_than_a_hundred_are_told_of_and_those_are_the_newest() -> None:
    assert missed(101) == list(range(1, 101))
    assert missed(102) == missed(100_000) == list(range(1, 101))
    assert missed(100_000, catch_up="all", max_catch_up=7) == list(range(7, 107))


def test_where_all_are_caught_up_those_are_missed_whose_turn_will_not_come() -> None:
    assert missed(10, catch_up="all", max_catch_up=3) == [3, 4, 5, 6, 7, 8, 9]
    assert missed(10, at=5, catch_up="all", max_catch_up=3) == [6, 7, 8, 9]
    assert missed(10, catch_up="all") == []
    assert missed(5, catch_up="all", max_lateness="2m") == [3, 4]
    assert missed(5, catch_up="all", max_lateness="10m", max_catch_up=4) == [4]


@pytest.mark.parametrize("policy", [{}, {"max_catch_up": 3}, {"max_lateness": "4m"}])
def test_where_all_are_caught_up_a_slot_is_due_or_missed_and_never_both(
    policy: dict[str, Any],
) -> None:
    job, schedule = job_of(catch_up="all", **policy)
    open_ones = list(range(9, -1, -1))
    late = [
        is_too_late(job, schedule, Slot("", NOON - number * MINUTE), NOON) for number in open_ones
    ]
    still_due = due(10, catch_up="all", **policy)

    assert still_due == [n for n, too_late in zip(open_ones, late, strict=True) if not too_late]
    assert missed(10, catch_up="all", **policy)[::-1] == [
        n for n in open_ones if n not in still_due
    ]


def test_the_latest_slot_is_due_alone_and_all_of_them_oldest_first() -> None:
    assert due() == due(5) == due(catch_up="none") == [0]
    assert due(0) == due(0, catch_up="all") == []
    assert due(4, catch_up="all") == [3, 2, 1, 0]
    assert due(catch_up="all", max_catch_up=2) == [1, 0]
    assert due(50, catch_up="all", max_lateness="90s") == [1, 0]


def test_days_of_missed_slots_are_no_dead_end_and_cost_no_walk_over_all() -> None:
    """A minute's job that was down for a year."""
    job, schedule = job_of(every=None, schedule="* * * * *", catch_up="all", max_catch_up=100)
    newest = schedule.newest(NOON)
    assert newest is not None
    since = NOON - timedelta(days=365)

    assert len(slots_due(job, schedule, NOON, since)) == 100
    assert len(slots_missed(job, schedule, newest, NOON, since)) == 100
    assert work_of(lambda: slots_missed(job, schedule, newest, NOON, since)) < 50_000


def test_a_job_that_is_up_to_date_pays_nothing_for_what_it_could_catch_up() -> None:
    job, schedule = job_of(catch_up="all", max_catch_up=1_000)
    newest = schedule.newest(NOON)
    assert newest is not None

    assert work_of(lambda: is_too_late(job, schedule, newest, NOON)) < 200
    assert work_of(lambda: slots_missed(job, schedule, newest, NOON, NOON - MINUTE)) < 200


def test_of_two_stamps_in_a_repeated_hour_the_later_one_counts() -> None:
    """A database may tell its stamps in a zone whose clock goes back."""
    berlin = ZoneInfo("Europe/Berlin")
    first_pass = datetime(2026, 10, 25, 2, 50, tzinfo=berlin)
    second_pass = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=berlin)
    job, _ = job_of(every="10m")
    plan = Plan(job, Config.load({}, {}), "app", "manual", None, False)
    run = plan.make_run(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))

    for last_ran, since in ((first_pass, second_pass), (second_pass, first_pass)):
        [only] = plan.look_back(run, last_ran, since)
        assert only.key == "2026-10-25T01:20Z"
        assert run.previous_slot == last_ran.astimezone(UTC)
