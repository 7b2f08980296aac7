"""What holds for every expression, zone and instant, checked against a walk minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from cronsim import CronSim
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flask_cronlock.exceptions import ScheduleError
from flask_cronlock.schedule import CronSchedule, EverySchedule
from tests.support.slots import assert_they_agree

ZONES = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/New_York",
    "America/Nuuk",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Almaty",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
]
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
START, END = datetime(1970, 1, 5, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)

calm = settings(
    deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)


@cache
def clock_changes(zone: str) -> list[datetime]:
    """List the days before the changes of a zone's offset."""
    info = ZoneInfo(zone)
    days = [START + n * DAY for n in range((END - START).days)]
    offsets = [day.astimezone(info).utcoffset() for day in days]
    return [days[n] for n in range(len(days) - 1) if offsets[n] != offsets[n + 1]] or [START]


@st.composite
def zones_and_instants(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and an instant, mostly one near a change of its clock."""
    zone = draw(st.sampled_from(ZONES))
    anywhere = st.timedeltas(timedelta(0), timedelta(days=130 * 365)).map(START.__add__)
    near = st.builds(
        lambda day, offset: day + offset,
        st.sampled_from(clock_changes(zone)),
        st.timedeltas(-DAY, 2 * DAY),
    )
    return zone, draw(st.one_of(near, near, anywhere))


def expressions(hours: list[str], days: list[str], weekdays: list[str]) -> st.SearchStrategy[str]:
    return st.builds(
        "{} {} {} * {}".format,
        st.sampled_from(["0", "30", "*", "*/15", "*/7", "0,1,59", "5-50/9"]),
        st.sampled_from(hours),
        st.sampled_from(days),
        st.sampled_from(weekdays),
    )


HOURS = ["*", "*/2", "0", "2", "23", "1-3", "0,23", "0-23"]
common = expressions(HOURS, ["*"], ["*"])
rare = expressions(HOURS, ["*", "1", "31", "L", "LW", "*/10", "13"], ["*", "0", "FRI", "6L", "2#5"])


def matches(expression: str, wall: datetime) -> bool:
    """Ask cronsim, which knows no zone here."""
    return next(CronSim(expression, wall - timedelta(seconds=1))) == wall


def is_fixed(expression: str) -> bool:
    return not any(field.startswith("*") for field in expression.split()[:2])


def expected(expression: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """Walk the real minutes and list the slots in (begin, end] by the policy's plain words."""
    info, reach = ZoneInfo(zone), DAY if is_fixed(expression) else timedelta(0)
    first_minute = begin.replace(second=0, microsecond=0) - reach
    minutes = [first_minute + n * MINUTE for n in range((end + reach - first_minute) // MINUTE + 1)]
    walls = [minute.astimezone(info).replace(tzinfo=None) for minute in minutes]
    if is_fixed(expression):
        found = _labels_resolved(expression, dict(zip(walls[::-1], minutes[::-1], strict=True)))
    else:
        found = {
            minute for minute, wall in zip(minutes, walls, strict=True) if matches(expression, wall)
        }
    return sorted(instant for instant in found if begin < instant <= end)


def _labels_resolved(expression: str, first_pass: dict[datetime, datetime]) -> set[datetime]:
    found, last = set(), max(first_pass)
    for label in CronSim(expression, min(first_pass)):
        if label > last:
            return found
        wall = label
        while wall not in first_pass and wall.time() != time.max and wall.date() == label.date():
            wall += MINUTE
        if wall.date() == label.date():
            found.add(first_pass[wall])
    return found


@calm
@given(zones_and_instants(), common)
def test_the_slots_are_those_of_a_walk_by_the_minute(zone_and_instant, expression):
    zone, begin = zone_and_instant
    end = begin + timedelta(hours=8)
    schedule, slots = CronSchedule(expression, zone), []
    slot = schedule.next(begin)
    while slot.at.astimezone(UTC) <= end:
        slots.append(slot.at.astimezone(UTC))
        slot = schedule.next(slot.at)
    assert slots == expected(expression, zone, begin, end)


@calm
@given(zones_and_instants(), rare)
def test_newest_next_previous_and_named_agree(zone_and_instant, expression):
    zone, instant = zone_and_instant
    try:
        schedule = CronSchedule(expression, zone)
    except ScheduleError:  # A fifth Tuesday on the 1st, 11th or 21st never comes.
        assume(False)
    assert_they_agree(schedule, instant)
    slot = schedule.next(instant)
    assert slot.at.tzinfo is ZoneInfo(zone)
    assert slot.at.astimezone(UTC).astimezone(slot.at.tzinfo).fold == slot.at.fold


@calm
@given(zones_and_instants(), st.integers(1, 10**7))
def test_every_agrees_with_itself(zone_and_instant, seconds):
    zone, instant = zone_and_instant
    schedule = EverySchedule(timedelta(seconds=seconds))
    assert_they_agree(schedule, instant)
    assert schedule.next(instant.astimezone(ZoneInfo(zone))) == schedule.next(instant)


@calm
@given(zones_and_instants(), st.integers(0, 23), st.integers(0, 59))
def test_a_daily_job_has_one_slot_per_local_date_and_leaves_none_out(
    zone_and_instant, hour, minute
):
    zone, instant = zone_and_instant
    slots = CronSchedule(f"{minute} {hour} * * *", zone).upcoming(instant, 5)
    dates = [slot.at.date() for slot in slots]
    assert sorted(set(dates)) == dates
    assert [slot.key for slot in slots] == [f"{date}T{hour:02}:{minute:02}" for date in dates]
    missing = (dates[-1] - dates[0]).days - 4
    assert missing == 0 or (zone in {"Pacific/Apia", "America/Nuuk"} and missing == 1)


@calm
@given(zones_and_instants(), rare)
def test_the_same_instant_gives_the_same_slot_whatever_zone_it_is_told_in(zone_and_instant, text):
    zone, instant = zone_and_instant
    try:
        schedule = CronSchedule(text, zone)
    except ScheduleError:
        assume(False)
    for told in ("America/St_Johns", "Asia/Kathmandu", zone):
        assert schedule.newest(instant.astimezone(ZoneInfo(told))) == schedule.newest(instant)
        assert schedule.next(instant.astimezone(ZoneInfo(told))) == schedule.next(instant)
