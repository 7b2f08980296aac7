"""What can be a job, and what is refused with the job's name and a cure."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Run
from flask_cronlock.exceptions import RegistrationError, UnknownJob
from flask_cronlock.jobs import CatchUp

LONGEST = 63


@pytest.fixture
def cron() -> CronLock:
    return CronLock(SQLAlchemy())


def nothing() -> None:
    """Be a job."""


def test_the_bare_decorator_takes_the_name_with_dashes_and_returns_the_function(
    cron: CronLock,
) -> None:
    def warm_cache() -> None: ...

    assert cron.job(warm_cache) is warm_cache
    assert cron.jobs.get("warm-cache").function is warm_cache
    assert cron.jobs.get("warm-cache").schedule("UTC") is None


def test_the_decorator_with_arguments_returns_the_function(cron: CronLock) -> None:
    assert cron.job("digest", every="1h")(nothing) is nothing
    assert cron.job(every="1h")(nothing) is nothing
    assert [job.name for job in cron.jobs] == ["digest", "nothing"]


@pytest.mark.parametrize("name", ["a", "0", "a_b-c", "7-zip", "x" * LONGEST])
def test_good_names(cron: CronLock, name: str) -> None:
    cron.job(name)(nothing)
    assert name in cron.jobs


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            " a",
            "a ",
            "a\n",
            "a/b",
            "..",
            ".",
            "a\x00b",
            "a%2Fb",
            "a:b",
            "[a]",
            "-a",
            "_a",
        ),
        *("Digest", "café", "cafe\u0301", "x'); drop table--", "{0}", "%s"),
        *("x" * (LONGEST + 1), "x" * 255, "x" * 10_000),
        *(b"digest", 7, ("a", "b")),
    ],
)
def test_bad_names_are_refused(cron: CronLock, name: Any) -> None:
    with pytest.raises(RegistrationError, match="lower-case letters"):
        cron.job(name)(nothing)
    assert len(list(cron.jobs)) == 0


def test_a_function_without_a_usable_name_needs_one(cron: CronLock) -> None:
    with pytest.raises(RegistrationError, match="lower-case letters"):
        cron.job(lambda: None)
    with pytest.raises(RegistrationError, match="lower-case letters"):
        cron.job(functools.partial(nothing))
    cron.job("named")(functools.partial(nothing))


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def two(one: int, other: int) -> None: ...


def keyword_only(*, run: Run) -> None: ...


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (coroutine, r"plain function.*asyncio\.run"),
        (async_generator, r"plain function.*asyncio\.run"),
        (functools.partial(coroutine), r"plain function.*asyncio\.run"),
        (generator, "return a value instead of yielding"),
        (two, "one argument, the run, or none"),
        (keyword_only, "one argument, the run, or none"),
        (7, "is no function"),
    ],
)
def test_what_cannot_be_a_job_is_refused_by_name(cron: CronLock, function: Any, cure: str) -> None:
    with pytest.raises(RegistrationError, match=f"'digest'.*{cure}"):
        cron.job("digest")(function)
    assert "digest" not in cron.jobs


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ({"schedule": "0 0 7 * * *"}, "6 fields; write five"),
        ({"schedule": "0 0 30 2 *"}, "date that never comes"),
        ({"schedule": "61 * * * *"}, "bad minute field"),
        ({"schedule": "0 7 * * *", "tz": "Europe/Berlim"}, "unknown time zone"),
        ({"schedule": "0 7 * * *", "tz": '"Europe/Berlin"'}, "unknown time zone"),
        ({"schedule": "0 7 * * *", "tz": ""}, "unknown time zone"),
        ({"schedule": "0 7 * * *", "every": "1h"}, "not both"),
        (
            {"shedule": "0 7 * * *"},
            "there is no option shedule=; .*there are schedule=, tz=, every=",
        ),
        ({"name": "x", "tries": 3}, "there is no option name=, tries=; after the name, which has"),
        ({"tz": "Europe/Berlin"}, "tz= goes with schedule="),
        ({"every": "1h", "tz": "Europe/Berlin"}, "tz= goes with schedule="),
        ({"max_lateness": "1h"}, "needs a schedule="),
        ({"every": "0s"}, "not positive"),
        ({"every": "1.5s"}, "whole seconds"),
        ({"every": True}, "not a duration"),
        ({"every": "1h", "timeout": "soon"}, "timeout='soon'"),
        ({"every": "1h", "timeout": "25d"}, "24 days"),
        ({"every": "1h", "max_lateness": -1}, "max_lateness=-1"),
        ({"catch_up": "all"}, "catch_up= needs a schedule= or every="),
        ({"catch_up": "none"}, "catch_up= needs a schedule= or every="),
        ({"max_catch_up": 5}, "max_catch_up= needs a schedule= or every="),
        ({"every": "1h", "catch_up": "newest"}, "catch_up='newest': give latest, all or none"),
        ({"every": "1h", "catch_up": "ALL"}, "give latest, all or none"),
        ({"every": "1h", "catch_up": None}, "give latest, all or none"),
        ({"every": "1h", "catch_up": True}, "give latest, all or none"),
        ({"every": "1h", "catch_up": ["all"]}, "give latest, all or none"),
        ({"every": "1h", "max_catch_up": 5}, 'max_catch_up= goes with catch_up="all"'),
        ({"every": "1h", "catch_up": "none", "max_catch_up": 5}, 'goes with catch_up="all"'),
        *(
            ({"every": "1h", "catch_up": "all", "max_catch_up": most}, "give 1 to 1000")
            for most in (0, -1, 1_001, 1.5, "5", True)
        ),
    ],
)
def test_bad_arguments_are_refused_by_the_jobs_name(
    cron: CronLock, arguments: dict[str, Any], cure: str
) -> None:
    with pytest.raises(RegistrationError, match=f"^Job 'digest': .*{cure}"):
        cron.job("digest", **arguments)(nothing)
    assert "digest" not in cron.jobs


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ({}, (CatchUp.LATEST, 100)),
        ({"catch_up": "latest"}, (CatchUp.LATEST, 100)),
        ({"catch_up": "none"}, (CatchUp.NONE, 100)),
        ({"catch_up": "all"}, (CatchUp.ALL, 100)),
        ({"catch_up": "all", "max_catch_up": 1}, (CatchUp.ALL, 1)),
        ({"catch_up": "all", "max_catch_up": 1_000}, (CatchUp.ALL, 1_000)),
    ],
)
def test_what_becomes_of_missed_slots_is_the_latest_unless_said_otherwise(
    cron: CronLock, arguments: dict[str, Any], policy: tuple[CatchUp, int]
) -> None:
    cron.job("digest", every="1h", **arguments)(nothing)
    job = cron.jobs.get("digest")
    assert (job.catch_up, job.max_catch_up) == policy


def test_a_second_job_of_the_same_name_is_refused(cron: CronLock) -> None:
    @cron.job("digest")
    def digest() -> None: ...

    first = digest
    with pytest.raises(RegistrationError, match=r"'digest'.*the name is taken.*choose another"):

        @cron.job("digest")
        def digest() -> None: ...

    with pytest.raises(RegistrationError, match="choose another"):
        cron.job("digest")(functools.partial(nothing))
    assert cron.jobs.get("digest").function is first


def test_a_module_that_is_imported_twice_registers_its_jobs_once(
    cron: CronLock, tmp_path: Path
) -> None:
    source = tmp_path / "jobs.py"
    source.write_text("def register(cron):\n    @cron.job\n    def digest(): ...\n")
    for name in ("jobs", "package.jobs"):
        spec = importlib.util.spec_from_file_location(name, source)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.register(cron)
    assert len(list(cron.jobs)) == 1


@pytest.mark.parametrize(
    ("function", "takes_run"),
    [
        (lambda: None, False),
        (lambda run: None, True),
        (lambda anything: None, True),
        (lambda run=None: None, True),
        (lambda limit=10: None, False),
        (lambda *args, **kwargs: None, False),
        (lambda run, limit=10: None, True),
        (lambda limit=10, run=None: None, False),
    ],
)
def test_a_job_is_handed_the_run_where_it_takes_one(
    cron: CronLock, function: Callable[..., None], takes_run: bool
) -> None:
    cron.job("digest")(function)
    assert cron.jobs.get("digest").takes_run is takes_run


def test_an_unknown_job_names_the_command_that_lists_the_known(cron: CronLock) -> None:
    with pytest.raises(UnknownJob, match="flask cron list"):
        cron.jobs.get("no-such-job")


class Yielding:
    def __call__(self) -> Any:
        yield 1


class Awaiting:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize("function", [Yielding(), Awaiting(), functools.partial(Awaiting.__call__)])
def test_an_object_whose_call_does_its_work_later_is_refused(cron: CronLock, function: Any) -> None:
    with pytest.raises(RegistrationError, match="cannot be run here"):
        cron.job("digest")(function)


def test_what_does_not_tell_its_arguments_is_refused(cron: CronLock) -> None:
    with pytest.raises(RegistrationError, match="does not tell its arguments"):
        cron.job("digest")(dict)


def test_two_functions_behind_one_decorator_without_wraps_are_two(cron: CronLock) -> None:
    def timed(function: Any) -> Any:
        def wrapper() -> Any:
            return function()

        return wrapper

    def a() -> None: ...

    def b() -> None: ...

    cron.job("digest")(timed(a))
    with pytest.raises(RegistrationError, match="the name is taken"):
        cron.job("digest")(timed(b))
    cron.job("digest")(timed(a))


def test_the_methods_of_two_objects_are_two(cron: CronLock) -> None:
    class Mailer:
        def send(self) -> None: ...

    cron.job("send")(Mailer().send)
    with pytest.raises(RegistrationError, match="the name is taken"):
        cron.job("send")(Mailer().send)
