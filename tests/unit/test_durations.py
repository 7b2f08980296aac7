from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_cronlock.durations import format_duration, parse_duration, parse_every
from flask_cronlock.exceptions import DurationError


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("6h", 21_600),
        ("7d", 604_800),
        ("1.5h", 5_400),
        (60, 60),
        (0.25, 0.25),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_text_with_a_unit_or_seconds_or_a_timedelta(value, seconds):
    assert parse_duration(value, "timeout") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "60",
        "s",
        "1w",
        "90S",
        "1h30m",
        "90 s",
        "90s\n",
        "-5s",
        "1e3s",
        "٩s",
        None,
        True,
        False,
        float("nan"),
        b"90s",
        ["90s"],
    ],
)
def test_what_is_no_duration_is_refused_with_its_name_its_value_and_a_cure(value):
    with pytest.raises(DurationError, match="90s") as refused:
        parse_duration(value, "timeout")
    assert f"timeout={value!r} is not a duration" in str(refused.value)


@pytest.mark.parametrize("value", [0, -1, 0.0, "0s", "0.0000001s", 1e-9, timedelta(0), -0.5])
def test_a_duration_is_positive(value):
    with pytest.raises(DurationError, match=re.escape(f"grace={value!r} is not positive")):
        parse_duration(value, "grace")


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), 1e300, 10**400, "9" * 5_000 + "d", timedelta.max]
)
def test_a_duration_ends_within_a_century(value):
    with pytest.raises(DurationError, match="longer than a century"):
        parse_duration(value, "timeout")


def test_a_century_itself_is_a_duration():
    assert parse_duration("36525d", "history") == timedelta(days=36_525)


@pytest.mark.parametrize(("value", "seconds"), [("15m", 900), (1, 1), ("1.5m", 90), (2.0, 2)])
def test_every_takes_whole_seconds(value, seconds):
    assert parse_every(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [0.5, "1.5s", timedelta(seconds=1, microseconds=1)])
def test_every_refuses_parts_of_a_second(value):
    with pytest.raises(DurationError, match=r"every=.* whole seconds.*'1s'"):
        parse_every(value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1s"), (90, "90s"), (900, "15m"), (5_400, "90m"), (86_400, "1d"), (0.25, "0.25s")],
)
def test_a_duration_is_written_in_its_largest_whole_unit(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


@settings(deadline=None, database=None)
@given(
    st.one_of(
        st.timedeltas(timedelta(microseconds=1), timedelta(days=36_525)),
        st.integers(1, 36_525 * 86_400).map(lambda seconds: timedelta(seconds=seconds)),
    )
)
def test_a_written_duration_is_read_back_the_same(duration):
    assert parse_duration(format_duration(duration), "timeout") == duration
