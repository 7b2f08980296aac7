"""Which slot a wish is for: by the database's clock, a little early, and not too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock.catchup import is_too_late
from flask_cronlock.exceptions import SlotError
from flask_cronlock.jobs import Job
from flask_cronlock.policy import choose_slot
from flask_cronlock.registration import make_job
from flask_cronlock.schedule import CronSchedule, EverySchedule, Schedule

EARLY = timedelta(seconds=5)
MINUTE = CronSchedule("* * * * *", "UTC")
DAILY = CronSchedule("0 7 * * *", "Europe/Berlin")
NOON = datetime(2024, 6, 10, 12, tzinfo=UTC)


def job(max_lateness: str | None = None) -> Job:
    about = {"schedule": "* * * * *", "tz": None, "every": None, "timeout": None}
    return make_job(lambda: None, "digest", **about, max_lateness=max_lateness)


def newest(schedule: Schedule, clock: datetime, early: timedelta = EARLY) -> datetime:
    return choose_slot(job(), schedule, None, clock, early).at


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.mark.parametrize(
    ("after_noon", "slot"), [(0, 0), (0.001, 0), (54.9, 0), (55, 60), (59.9, 60), (60, 60)]
)
def test_a_wish_up_to_early_before_a_slot_is_for_that_slot(after_noon: float, slot: int) -> None:
    assert newest(MINUTE, NOON + seconds(after_noon)) == NOON + seconds(slot)


@pytest.mark.parametrize("interval", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("early", [5, 60, 86400])
def test_early_is_never_more_than_half_the_interval(interval: int, early: int) -> None:
    schedule = EverySchedule(interval)
    begun = schedule.newest(NOON)
    assert begun is not None
    for tenth in range(interval * 10):
        clock = begun.at + seconds(tenth / 10)
        ahead = newest(schedule, clock, seconds(early)) - clock
        assert ahead <= seconds(min(early, interval / 2))
        assert ahead > seconds(-interval / 2) or early < interval / 2


def test_without_early_no_slot_is_run_before_its_time() -> None:
    assert newest(MINUTE, NOON - timedelta(microseconds=1), timedelta()) == NOON - seconds(60)


def test_early_is_reckoned_in_elapsed_time_where_the_clock_goes_back() -> None:
    hourly = CronSchedule("30 * * * *", "Europe/Berlin")
    second_pass = datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
    assert newest(hourly, second_pass - seconds(4)).astimezone(UTC) == second_pass
    assert newest(hourly, second_pass - seconds(6)).astimezone(UTC) == second_pass - seconds(3600)


def test_before_the_first_slot_there_is_none() -> None:
    with pytest.raises(SlotError, match="no slot yet"):
        newest(EverySchedule("1h"), datetime(1969, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-3))])
def test_a_slot_may_be_named_in_any_zone(zone: tzinfo) -> None:
    named = datetime(2024, 6, 9, 5, tzinfo=UTC)
    slot = choose_slot(job(), DAILY, named.astimezone(zone), NOON, EARLY)
    assert slot.at == named
    assert slot.key == "2024-06-09T07:00"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (NOON, "not on the schedule"),
        (datetime(2024, 6, 10, 5, 3, tzinfo=UTC), "not on the schedule"),
        (datetime(2024, 6, 10, 5, 0, 5, 1, tzinfo=UTC), "not on the schedule"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23))), "not on the schedule"),
        (datetime(2024, 6, 11, 5, tzinfo=UTC), "in the future"),
        (datetime(2024, 6, 11, 4, 59, 56, tzinfo=UTC), "in the future"),
        (datetime(2024, 6, 12, 8, tzinfo=UTC), "in the future"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))), "in the future"),
        (datetime(2024, 6, 10, 7), "no offset"),
    ],
)
def test_a_time_that_is_no_slot_is_refused(named: datetime, words: str) -> None:
    with pytest.raises(SlotError, match=words) as refused:
        choose_slot(job(), DAILY, named, NOON, EARLY)
    assert "flask cron list" in str(refused.value)


@pytest.mark.parametrize("off", [-5, -2, -0.000001, 0, 0.123456, 2, 5])
def test_a_named_time_within_early_of_a_slot_is_that_slot(off: float) -> None:
    for schedule in (MINUTE, DAILY, EverySchedule("12s")):
        slot = schedule.newest(NOON - seconds(60))
        assert slot is not None
        named = slot.at.astimezone(UTC) + seconds(off)
        assert choose_slot(job(), schedule, named, NOON, EARLY) == slot


@pytest.mark.parametrize("off", [-5.000001, 5.000001, -30, 30])
def test_a_named_time_further_off_is_no_slot(off: float) -> None:
    with pytest.raises(SlotError, match="not on the schedule"):
        choose_slot(job(), MINUTE, NOON - seconds(60) + seconds(off), NOON, EARLY)


def test_without_early_a_slot_is_named_by_its_exact_time_alone() -> None:
    slot = NOON - seconds(60)
    assert choose_slot(job(), MINUTE, slot, NOON, timedelta()).at == slot
    for off in (-0.000001, 0.000001):
        with pytest.raises(SlotError, match="not on the schedule"):
            choose_slot(job(), MINUTE, slot + seconds(off), NOON, timedelta())


@pytest.mark.parametrize("interval", [1, 3, 8])
@pytest.mark.parametrize("early", [5, 86400])
def test_a_named_time_is_never_moved_by_more_than_half_the_interval(
    interval: int, early: int
) -> None:
    schedule = EverySchedule(interval)
    begun = schedule.newest(NOON - seconds(60))
    assert begun is not None
    for tenth in range(interval * 10):
        named = begun.at + seconds(tenth / 10)
        slot = choose_slot(job(), schedule, named, NOON, seconds(early))
        assert abs(slot.at - named) <= seconds(interval / 2)


@pytest.mark.parametrize("pass_", [0, 1])
def test_of_a_repeated_hour_each_pass_is_named_by_its_offset(pass_: int) -> None:
    hourly = CronSchedule("30 * * * *", "Europe/Berlin")
    named = datetime(2024, 10, 27, 2, 30, 2, tzinfo=ZoneInfo("Europe/Berlin"), fold=pass_)
    slot = choose_slot(job(), hourly, named, named.astimezone(UTC) + seconds(60), EARLY)
    assert slot.key == f"2024-10-27T0{pass_}:30Z"


class NoPlace(tzinfo):
    def utcoffset(self, _: datetime | None) -> None:
        return None


def test_a_zone_without_an_offset_counts_as_none() -> None:
    with pytest.raises(SlotError, match="no offset"):
        choose_slot(job(), DAILY, datetime(2024, 6, 10, 7, tzinfo=NoPlace()), NOON, EARLY)


def test_a_slot_that_is_about_to_begin_may_be_named() -> None:
    begins = datetime(2024, 6, 11, 5, tzinfo=UTC)
    assert choose_slot(job(), DAILY, begins, begins - seconds(4), EARLY).at == begins
    with pytest.raises(SlotError, match="in the future"):
        choose_slot(job(), DAILY, begins, begins - seconds(6), EARLY)


@pytest.mark.parametrize(
    ("max_lateness", "late", "too_late"),
    [
        (None, 59.9, False),
        (None, 60, True),
        ("30s", 30, False),
        ("30s", 30.1, True),
        ("2h", 7200, False),
        ("2h", 7200.1, True),
    ],
)
def test_a_slot_may_be_run_until_the_next_begins_or_max_lateness_is_over(
    max_lateness: str | None, late: float, too_late: bool
) -> None:
    slot = MINUTE.newest(NOON)
    assert slot is not None
    assert is_too_late(job(max_lateness), MINUTE, slot, NOON + seconds(late)) is too_late
