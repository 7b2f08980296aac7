"""What a clock has to do: which slots it takes up, which it drops, and how long it sleeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from flask_cronlock.agenda import Agenda, Entry
from flask_cronlock.registration import make_job

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
LONG_KNOWN = NOON - timedelta(days=400)


def at(minutes: float = 0, seconds: float = 0) -> datetime:
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def agenda_of(
    clock: datetime, known_since: datetime = LONG_KNOWN, jobs: int = 1, **how: object
) -> Agenda:
    """Return the agenda of jobs with a slot every minute."""
    asked: dict[str, object] = {"every": "1m", **how}
    made = [make_job(lambda: None, f"job-{number}", **asked) for number in range(jobs)]  # type: ignore[arg-type]
    schedules = [(job, job.schedule("UTC")) for job in made]
    known = {job.identity: known_since for job in made}
    return Agenda([(job, found) for job, found in schedules if found], known, clock)


def entry_of(agenda: Agenda) -> Entry:
    (entry,) = agenda.entries
    return entry


def slots(agenda: Agenda) -> list[datetime]:
    return [slot.at for slot in entry_of(agenda).slots]


def settle(agenda: Agenda) -> None:
    """Let all that is open have run."""
    entry_of(agenda).slots.clear()


def test_the_next_slot_is_taken_up_when_it_begins_and_not_before() -> None:
    agenda = agenda_of(at(seconds=30), known_since=at(seconds=30))
    assert slots(agenda) == []
    agenda.read(at(seconds=59.999))
    assert slots(agenda) == []
    agenda.read(at(minutes=1))
    assert slots(agenda) == [at(minutes=1)]


def test_what_has_run_is_not_taken_up_again() -> None:
    agenda = agenda_of(at(seconds=1))
    entry_of(agenda).settle(entry_of(agenda).slots[0])
    for second in range(2, 60):
        agenda.read(at(seconds=second))
        assert slots(agenda) == []


def test_only_what_is_later_than_known_since_is_caught_up() -> None:
    assert slots(agenda_of(at(seconds=30), known_since=at(seconds=1))) == []
    assert slots(agenda_of(at(seconds=30), known_since=at())) == []
    assert slots(agenda_of(at(seconds=30), known_since=at(seconds=-1))) == [at()]
    some = agenda_of(at(seconds=30), known_since=at(minutes=-2), catch_up="all")
    assert slots(some) == [at(minutes=-1), at()]


def test_latest_takes_the_newest_and_drops_it_for_a_newer_one() -> None:
    agenda = agenda_of(at(seconds=30))
    assert slots(agenda) == [at()]
    agenda.read(at(minutes=1))
    assert slots(agenda) == [at(minutes=1)]
    agenda.read(at(minutes=9))
    assert slots(agenda) == [at(minutes=9)]


def test_all_keeps_the_newest_max_catch_up_oldest_first() -> None:
    agenda = agenda_of(at(), catch_up="all", max_catch_up=3)
    assert slots(agenda) == [at(minutes=-2), at(minutes=-1), at()]
    agenda.read(at(minutes=1))
    assert slots(agenda) == [at(minutes=-1), at(), at(minutes=1)]
    agenda.read(at(minutes=60))
    assert slots(agenda) == [at(minutes=58), at(minutes=59), at(minutes=60)]


def test_all_takes_up_nothing_twice_when_it_is_read_on() -> None:
    agenda = agenda_of(at(), known_since=at(minutes=-2), catch_up="all")
    for second in range(0, 181, 20):
        agenda.read(at(seconds=second))
    assert slots(agenda) == [at(minutes=minute) for minute in range(-1, 4)]


def test_none_takes_up_only_what_begins_while_the_clock_is_there() -> None:
    agenda = agenda_of(at(seconds=1), catch_up="none")
    assert slots(agenda) == []
    agenda.read(at(minutes=1))
    assert slots(agenda) == [at(minutes=1)]


@pytest.mark.parametrize(("late", "taken"), [(59, True), (61, False)])
def test_none_leaves_what_the_clock_comes_to_a_minute_late(late: float, taken: bool) -> None:
    agenda = agenda_of(at(minutes=-1), catch_up="none", every="1h")
    agenda.read(at(seconds=late))
    assert slots(agenda) == ([at()] if taken else [])


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_max_lateness_ends_what_is_caught_up(catch_up: str) -> None:
    late = {"catch_up": catch_up, "max_lateness": "90s"}
    assert slots(agenda_of(at(seconds=31), **late))[0] >= at(minutes=-1)
    hourly = agenda_of(at(minutes=2), every="1h", **late)
    assert slots(hourly) == []


@pytest.mark.parametrize(("catch_up", "most"), [("latest", 1), ("all", 100), ("none", 1)])
def test_a_clock_set_forward_by_a_year_leaves_no_more_than_may_be_caught_up(
    catch_up: str, most: int
) -> None:
    agenda = agenda_of(at(), catch_up=catch_up)
    settle(agenda)
    agenda.read(at() + timedelta(days=365))
    assert len(slots(agenda)) == most
    assert slots(agenda)[-1] == at() + timedelta(days=365)
    agenda.read(at(minutes=1) + timedelta(days=365))
    assert slots(agenda)[-1] == at(minutes=1) + timedelta(days=365)


def test_a_clock_set_back_is_read_anew_so_that_no_slot_waits_for_the_old_time() -> None:
    agenda = agenda_of(at(minutes=60))
    settle(agenda)
    agenda.read(at(seconds=30))
    assert slots(agenda) == [at()]
    assert agenda.seconds(read_at=0, now=0) == 0
    settle(agenda)
    assert agenda.seconds(read_at=0, now=0) == 30
    agenda.read(at(minutes=1))
    assert slots(agenda) == [at(minutes=1)]


def test_a_clock_set_back_leaves_no_slot_that_is_in_the_future_now() -> None:
    agenda = agenda_of(at(minutes=60), catch_up="all", max_catch_up=5)
    agenda.read(at())
    assert slots(agenda)[-1] == at()
    assert len(slots(agenda)) == 5


def test_a_clock_set_back_to_before_the_job_was_known_catches_up_nothing() -> None:
    agenda = agenda_of(at(minutes=60), known_since=at(minutes=30))
    agenda.read(at())
    assert slots(agenda) == []


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_a_clock_that_trembles_brings_nothing_back(catch_up: str) -> None:
    agenda = agenda_of(at(seconds=0.2), catch_up=catch_up)
    settle(agenda)
    agenda.read(at(seconds=-0.3))
    agenda.read(at(seconds=0.3))
    assert slots(agenda) == []


def test_it_sleeps_until_the_next_slot() -> None:
    agenda = agenda_of(at(seconds=20))
    settle(agenda)
    assert agenda.seconds(read_at=1000, now=1000) == 40
    assert agenda.seconds(read_at=1000, now=1030) == 10
    assert agenda.seconds(read_at=1000, now=1050) == 0


def test_it_sleeps_until_the_first_next_slot_of_all_jobs() -> None:
    hourly, minutely = agenda_of(at(seconds=20), every="1h"), agenda_of(at(seconds=20))
    hourly.entries.extend(minutely.entries)
    for entry in hourly.entries:
        entry.slots.clear()
    assert hourly.seconds(read_at=0, now=0) == 40


def test_it_does_not_sleep_while_a_slot_is_open() -> None:
    agenda = agenda_of(at(seconds=20))
    assert agenda.open_at(now=0) == agenda.entries
    assert agenda.seconds(read_at=0, now=0) == 0


def test_a_slot_that_is_put_off_is_slept_for() -> None:
    agenda = agenda_of(at(seconds=20))
    entry_of(agenda).wait_until = 105
    assert agenda.open_at(now=104.9) == []
    assert agenda.seconds(read_at=100, now=100) == 5
    assert agenda.open_at(now=105) == agenda.entries


def test_while_a_slot_is_put_off_a_newer_one_is_slept_for() -> None:
    """A slot that fails or a pause must not make the next slot late."""
    agenda = agenda_of(at(seconds=50))
    entry_of(agenda).wait_until = 130
    assert agenda.seconds(read_at=100, now=100) == 10
    agenda.read(at(seconds=60))
    assert agenda.open_at(now=110) == agenda.entries


def test_a_run_elsewhere_is_left_alone_for_its_time_also_when_a_slot_begins() -> None:
    agenda = agenda_of(at(seconds=50))
    entry_of(agenda).elsewhere, entry_of(agenda).wait_until = True, 130
    agenda.read(at(seconds=60))
    assert agenda.open_at(now=129) == []
    assert agenda.seconds(read_at=110, now=110) == 20
    assert agenda.open_at(now=130) == agenda.entries


def test_a_busy_job_is_not_opened_and_not_waited_for() -> None:
    agenda = agenda_of(at(seconds=20), jobs=2)
    busy, idle = agenda.entries
    busy.busy = True
    assert agenda.open_at(now=0) == [idle]
    idle.slots.clear()
    assert agenda.seconds(read_at=0, now=0) == 40
    idle.busy = True
    assert agenda.seconds(read_at=0, now=0) == float("inf")


def test_slots_that_begin_while_a_job_is_busy_are_taken_up_for_after_it() -> None:
    agenda = agenda_of(at(), known_since=at(seconds=-1), catch_up="all")
    entry_of(agenda).busy = True
    agenda.read(at(minutes=2))
    assert slots(agenda) == [at(), at(minutes=1), at(minutes=2)]
    assert agenda.open_at(now=0) == []


def test_without_jobs_there_is_nothing_to_wait_for() -> None:
    agenda = agenda_of(at(), jobs=0)
    assert agenda.open_at(now=0) == []
    assert agenda.seconds(read_at=0, now=0) == float("inf")
