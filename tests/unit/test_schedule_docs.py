"""The pictures and tables of docs/slots.md show what the code does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from flask_cronlock.exceptions import ScheduleError
from flask_cronlock.schedule import CronSchedule
from tests.support.slots import at, between, named

TEXT = (Path(__file__).parents[2] / "docs" / "slots.md").read_text(encoding="utf-8")
NIGHTS = re.findall(r"The night of (\S+):\n\n```\n(.*?)```", TEXT, re.DOTALL)
ODD = re.findall(r"^\| `(.+?)` \| (\w+/\w+) \| `(\S+)` \| `?(.+?)`? \|", TEXT, re.MULTILINE)
BERLIN = ZoneInfo("Europe/Berlin")


def columns(line: str) -> list[str]:
    return [line[start : start + 8].strip() for start in range(12, 52, 8)]


def test_the_page_has_a_spring_an_autumn_and_odd_zones():
    assert [night for night, _picture in NIGHTS] == ["2026-03-29", "2026-10-25"]
    assert len(ODD) == 7


@pytest.mark.parametrize(("night", "picture"), NIGHTS)
def test_a_picture_shows_what_the_clock_shows_and_which_slots_there_are(night, picture):
    utc, wall, offset, *schedules = picture.splitlines()
    instants = [at(f"{night}T{time}Z") for time in columns(utc)]
    shown = [instant.astimezone(BERLIN) for instant in instants]
    assert columns(wall) == [f"{local:%H:%M}" for local in shown]
    assert columns(offset) == [local.isoformat()[-6:] for local in shown]
    assert len(schedules) == 2
    for line in schedules:
        schedule = CronSchedule(line[:12].strip(), "Europe/Berlin")
        marked = [when for when, mark in zip(instants, columns(line), strict=True) if mark]
        assert between(schedule, instants[0].isoformat(), instants[-1].isoformat()) == marked
        if key := re.search(r"key (\S+)", line):
            assert [named(schedule, when).key for when in marked] == [key[1]]


@pytest.mark.parametrize(("expression", "zone", "key", "instant"), ODD)
def test_an_odd_zone_has_the_slot_that_the_table_says(expression, zone, key, instant):
    schedule = CronSchedule(expression, zone)
    if instant != "none":
        slot = named(schedule, at(instant))
        assert (slot.key, slot.at.isoformat()) == (key, instant)
        return
    day = datetime.fromisoformat(key).replace(tzinfo=UTC)
    assert key not in {slot.key for slot in schedule.upcoming(day - timedelta(days=3), 6)}


def test_what_else_the_page_says_is_so():
    quarters = CronSchedule("*/15 2 * * *", "Europe/Berlin")
    assert between(quarters, "2026-03-29T00:00Z", "2026-03-29T12:00Z") == []
    assert len(between(quarters, "2026-10-24T22:00Z", "2026-10-25T12:00Z")) == 8
    listed = CronSchedule("0,15,30,45 2 * * *", "Europe/Berlin")
    assert len(between(listed, "2026-10-24T22:00Z", "2026-10-25T12:00Z")) == 4
    hourly = CronSchedule("0 * * * *", "Australia/Lord_Howe")
    assert hourly.interval(named(hourly, at("2026-10-03T14:30Z"))) == timedelta(minutes=90)
    for expression in ("0 0 30 2 *", "*/15 2 * 3 7L"):
        with pytest.raises(ScheduleError):
            CronSchedule(expression, "Europe/Berlin")
