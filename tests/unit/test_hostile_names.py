"""Whatever is given as a job's name or policy: it is one, or it is refused in a few words."""

from __future__ import annotations

import string
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from hypothesis import example, given
from hypothesis import strategies as st

from flask_cronlock import CronLock
from flask_cronlock.exceptions import RegistrationError, UnknownJob
from flask_cronlock.locks import lock_text

from ..support.fuzz import cases, refused_briefly
from ..support.fuzz_values import any_text, plain_values
from ..support.values import Unspeakable

LETTERS = string.ascii_lowercase + string.digits
close_names = st.text(LETTERS + "-_", min_size=1, max_size=70)
names = st.one_of(any_text, close_names, close_names.map(lambda name: name + "\n"), plain_values)


def nothing() -> None:
    """Be a job."""


def is_name(value: object) -> bool:
    """Say once more, and in another way, what a job's name is."""
    if not isinstance(value, str):
        return False
    characters = set(str.__str__(value))
    return (
        0 < str.__len__(value) <= 63
        and characters <= set(LETTERS + "-_")
        and str.__str__(value)[0] in LETTERS
    )


@cases(150)
@given(name=names)
@example(name=10**5_000)
def test_a_name_is_taken_as_it_is_or_refused(name: Any) -> None:
    cron = CronLock(SQLAlchemy())
    try:
        cron.job("" if name is None else name)(nothing)
    except RegistrationError as error:
        refused_briefly(error, "no job name")
        assert not is_name(name)
        assert list(cron.jobs) == []
        return
    assert is_name(name)
    assert lock_text("", name) == name


@cases(150)
@given(
    argument=st.sampled_from(["previous_names", "catch_up", "max_catch_up", "tz", "schedule"]),
    value=names,
)
@example(argument="previous_names", value=7)
@example(argument="previous_names", value=[10**5_000])
@example(argument="max_catch_up", value=10**5_000)
@example(argument="tz", value=["UTC"])
def test_any_argument_is_of_use_or_is_refused_by_the_jobs_name(argument: str, value: Any) -> None:
    cron = CronLock(SQLAlchemy())
    how = {"schedule": "0 7 * * *", **({"catch_up": "all"} if argument == "max_catch_up" else {})}
    try:
        cron.job("digest", **{**how, argument: value})(nothing)
    except RegistrationError as error:
        refused_briefly(error, "Job 'digest': ")
        assert list(cron.jobs) == []


@cases(50)
@given(name=names)
def test_a_function_of_any_name_is_a_job_or_refused(name: Any) -> None:
    class Function:
        __name__ = name

        def __call__(self) -> None:
            """Be a job."""

    cron = CronLock(SQLAlchemy())
    try:
        cron.job()(Function())
    except RegistrationError as error:
        refused_briefly(error, "no job name")
        return
    assert all(is_name(job.name) for job in cron.jobs)


@cases(50)
@given(name=names)
@example(name=10**5_000)
def test_a_name_that_nobody_registered_is_unknown(name: Any) -> None:
    with pytest.raises(UnknownJob) as raised:
        CronLock(SQLAlchemy()).jobs.get(name)
    refused_briefly(raised.value, "`flask cron list`")


@pytest.mark.parametrize("argument", ["previous_names", "catch_up", "max_catch_up"])
def test_what_has_no_words_for_itself_is_refused_too(argument: str) -> None:
    how = {"every": "1h", "catch_up": "all", argument: Unspeakable()}
    with pytest.raises(RegistrationError, match=r"^Job 'digest': .*<Unspeakable>"):
        CronLock(SQLAlchemy()).job("digest", **how)(nothing)  # type: ignore[arg-type]


def test_a_name_that_has_no_words_for_itself_is_refused() -> None:
    with pytest.raises(RegistrationError, match="<Unspeakable> is no job name"):
        CronLock(SQLAlchemy()).job(Unspeakable())(nothing)  # type: ignore[call-overload]


def test_an_unknown_name_that_has_no_words_for_itself_is_told_as_one() -> None:
    with pytest.raises(UnknownJob, match="<Unspeakable>"):
        CronLock(SQLAlchemy()).jobs.get(Unspeakable())  # type: ignore[arg-type]
