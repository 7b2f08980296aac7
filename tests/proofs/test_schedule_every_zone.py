"""Every zone of the installed time zone data, on the days its clock changes, minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from flask_cronlock.cronfields import SAMPLE_YEARS
from flask_cronlock.schedule import CronSchedule, Slot
from tests.support.slots import TICK, assert_they_agree, named
from tests.support.walks import MINUTE, ZONES, Walk, changes_of, clock, zones_alike

CALM = datetime(2001, 1, 31, tzinfo=UTC)

MINUTES = ["0", "15", "30", "59", "0,1,59", "5-50/9", "*/7", "*/15", "*/30", "*"]
HOURS = ["0", "1", "2", "3", "23", "1-3", "22-23", "0-23", "*/2", "*"]


def nights(random: Random, name: str) -> list[datetime]:
    """Choose a change of each kind that the zone has had, spring, autumn and odd; or a calm day."""
    kinds: dict[tuple[timedelta, timedelta], list[datetime]] = {}
    for change in changes_of(name):
        kinds.setdefault((change.before, change.after), []).append(change.at)
    return [random.choice(kind) for kind in kinds.values()] or [CALM]


def expressions(random: Random, night: datetime, zone: ZoneInfo) -> Iterator[str]:
    """Draw a daily time near the change, and a schedule of any dates or of that night's."""
    (before, _), (after, _) = clock(night - TICK, zone), clock(night, zone)
    low, high = sorted([before, after])
    inside = low + random.randrange((high - low) // MINUTE + 1) * MINUTE
    near = random.choice([low - MINUTE, low, inside, inside, high, high + MINUTE])
    yield f"{near.minute} {near.hour} * * *"
    weekday = after.isoweekday() % 7
    days = ["* * *", f"{after.day} * *", f"* * {weekday}", f"{after.day} * {weekday}", "*/2 */3 *"]
    dates = random.choice(["* * *", *days])
    yield f"{random.choice(MINUTES)} {random.choice(HOURS)} {dates}"


def test_every_zones_slots_are_those_of_a_walk_along_its_clock():
    for names in zones_alike():
        random = Random(names[0])
        for night in nights(random, names[0]):
            walk = Walk(random.choice(names), night)
            for expression in expressions(random, night, walk.zone):
                schedule = CronSchedule(expression, walk.zone.key)
                expected = list(walk.slots(expression).items())
                told = f"{schedule} from {walk.begin} to {walk.end}"
                slots = list(forward(schedule, walk))
                assert [(slot.at.astimezone(UTC), slot.key) for slot in slots] == expected, told
                assert list(backward(schedule, walk)) == slots[::-1], told
                assert_about(schedule, walk, random, dict(expected), told)


def forward(schedule: CronSchedule, walk: Walk) -> Iterator[Slot]:
    slot = schedule.next(walk.begin - TICK)
    while slot.at.astimezone(UTC) < walk.end:
        yield slot
        slot = schedule.next(slot.at)


def backward(schedule: CronSchedule, walk: Walk) -> Iterator[Slot]:
    slot = schedule.newest(walk.end - TICK)
    while slot is not None and slot.at.astimezone(UTC) >= walk.begin:
        yield slot
        slot = schedule.previous(slot)


def assert_about(
    schedule: CronSchedule, walk: Walk, random: Random, expected: dict[datetime, str], told: str
) -> None:
    """Ask about some minutes of the days and of the hour that begins with the change."""
    minutes = [instant for instant, _shown in random.sample(walk.steps[300:-300], 2)]
    for instant in [*minutes, walk.around + random.randrange(60) * MINUTE]:
        slot = named(schedule, instant)
        if walk.begin <= instant < walk.end:
            assert (slot.key if slot else None) == expected.get(instant), f"{instant} {told}"
        assert_they_agree(schedule, instant + random.choice([-1, 0, 1]) * TICK)


def test_every_zone_of_any_name_gives_one_answer_to_an_instant_in_whatever_zone_it_is_told():
    for name in ZONES:
        random = Random(name)
        at = random.choice(nights(random, name)) + random.randrange(-1500, 1500) * MINUTE
        fixed, elapsed = CronSchedule("30 0-3 * * *", name), CronSchedule("*/20 * * * *", name)
        for schedule in (fixed, elapsed):
            assert_they_agree(schedule, at)
            for told in (name, random.choice(ZONES)):
                moment = at.astimezone(ZoneInfo(told))
                assert schedule.newest(moment) == schedule.newest(at), (name, moment)
                assert schedule.next(moment) == schedule.next(at), (name, moment)


def test_a_daily_job_has_one_slot_on_each_local_date_of_every_zone():
    for names in zones_alike():
        random = Random(names[0])
        for night in nights(random, names[0]):
            schedule = CronSchedule(
                f"{random.randrange(60)} {random.choice([0, 1, 2, 3, 12, 23])} * * *", names[0]
            )
            slots = schedule.upcoming(night - timedelta(days=2), 4)
            dates = [slot.at.date() for slot in slots]
            assert len(set(dates)) == 4, f"{schedule} {night}"
            assert [slot.key[:10] for slot in slots] == [f"{day}" for day in dates], schedule


def test_every_zone_has_come_to_its_lasting_rule_by_the_years_that_stand_for_all_later_ones():
    weeks = [datetime(SAMPLE_YEARS.start, 1, 1) + n * timedelta(days=7) for n in range(28 * 52)]
    later = [week + timedelta(days=28 * 1461 // 4) for week in weeks]
    for names in zones_alike():
        zone = ZoneInfo(names[0])
        assert list(map(zone.utcoffset, weeks)) == list(map(zone.utcoffset, later)), names
