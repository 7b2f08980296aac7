"""Whatever is given as a duration: it is one, or it is refused in a few words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flask_cronlock.durations import parse_duration
from flask_cronlock.exceptions import DurationError, RegistrationError
from flask_cronlock.registration import LONGEST_TIMEOUT, make_job

from ..support.fuzz import cases, refused_briefly
from ..support.fuzz_values import plain_values
from ..support.values import Unspeakable

CENTURY = timedelta(days=36_525)
durations = st.one_of(
    plain_values,
    st.integers(),
    st.integers(0, 10_000).map(lambda digits: 10**digits),
    st.floats(),
    st.timedeltas(),
    st.from_regex(r"[0-9]{1,400}(\.[0-9]{1,400})?[smhdw]?", fullmatch=True),
    st.sampled_from([timedelta.max, timedelta.min, True, False, "١s", "1e3s", "-1s", "1_0s"]),
)


@cases(300)
@given(value=durations)
@example(value=10**5_000)
@example(value=[-(10**5_000)])
def test_a_duration_is_positive_and_within_a_century_or_refused(value: Any) -> None:
    try:
        duration = parse_duration(value, "wait")
    except DurationError as error:
        refused_briefly(error, ": wait=")
        return
    assert not isinstance(value, bool)
    assert timedelta(0) < duration <= CENTURY


@cases(100)
@given(which=st.sampled_from(["every", "timeout", "max_lateness"]), value=durations, also=durations)
def test_a_job_with_any_durations_is_one_or_is_refused_by_its_name(
    which: str, value: Any, also: Any
) -> None:
    try:
        job = make_job(lambda: None, "digest", **{"every": also, which: value})
    except RegistrationError as error:
        refused_briefly(error, "Job 'digest': ")
        return
    assert job.timeout is None or timedelta(0) < job.timeout <= LONGEST_TIMEOUT


def test_what_has_no_words_for_itself_is_no_duration() -> None:
    with pytest.raises(DurationError, match="<Unspeakable> is not a duration"):
        parse_duration(Unspeakable(), "wait")  # type: ignore[arg-type]
