"""From a function and what was said of it to a job; whatever is wrong is refused here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from .durations import Duration, parse_duration
from .exceptions import RegistrationError
from .jobs import DEFAULT_CATCH_UP, JOB_NAME, CatchUp, Job
from .queue.extra import require_queue
from .schedule import CronSchedule, EverySchedule, Schedule
from .texts import shown
from .zones import load_zone

LONGEST_TIMEOUT = timedelta(days=24)
"""PostgreSQL keeps its limits as milliseconds in 31 bits."""
MOST_CATCH_UP = 1_000


def make_job(
    function: Callable[..., Any],
    name: str | None,
    /,
    *,
    schedule: str | None = None,
    tz: str | None = None,
    every: Duration | None = None,
    timeout: Duration | None = None,
    max_lateness: Duration | None = None,
    catch_up: str = CatchUp.LATEST,
    max_catch_up: int | None = None,
    previous_names: Sequence[str] = (),
    on: str | None = None,
    **unknown: object,
) -> Job:
    """Return the job, or raise :exc:`RegistrationError` naming it and the cure."""
    name = checked_name(name, function)
    try:
        refuse_unknown(unknown, make_job)
        refuse_deferred(function)
        if schedule is None and every is None:
            _refuse_policies(max_lateness, catch_up, max_catch_up)
        return Job(
            name,
            function,
            _takes_run(function),
            _scheduled(schedule, tz, every),
            timeout=None if timeout is None else checked_timeout(timeout),
            max_lateness=_checked_lateness(max_lateness),
            catch_up=_checked_catch_up(catch_up),
            max_catch_up=_checked_most(catch_up, max_catch_up),
            previous_names=_checked_previous(name, previous_names),
            on_worker=_checked_place(on),
        )
    except RegistrationError as error:
        error.args = (f"Job {name!r}: {error}",)
        raise


def _scheduled(
    expression: str | None, tz: str | None, every: Duration | None
) -> Callable[[str], Schedule | None]:
    """Return what makes the schedule once the app's zone is known; refuse a wrong one now."""
    if expression is not None and every is not None:
        raise RegistrationError("give schedule= or every=, not both")
    if tz is not None and expression is None:
        raise RegistrationError("tz= goes with schedule=; every= counts from 1970-01-01 UTC")
    if every is not None:
        interval = EverySchedule(every)
        return lambda _: interval
    if expression is None:
        return lambda _: None
    in_zone = cache(lambda zone: CronSchedule(expression, zone))
    named = None if tz is None else load_zone(tz).key
    in_zone(named or "UTC")
    return lambda zone: in_zone(named or zone)


def _refuse_policies(max_lateness: object, catch_up: object, max_catch_up: object) -> None:
    given = {
        "max_lateness=": max_lateness is not None,
        "catch_up=": catch_up != CatchUp.LATEST,
        "max_catch_up=": max_catch_up is not None,
    }
    for name in filter(given.get, given):
        raise RegistrationError(f"{name} needs a schedule= or every= to be late for")


def _checked_lateness(value: Duration | None) -> timedelta | None:
    return None if value is None else parse_duration(value, "max_lateness")


def _checked_catch_up(value: object) -> CatchUp:
    if not isinstance(value, str) or value not in list(CatchUp):
        raise RegistrationError(f"catch_up={shown(value)}: give latest, all or none")
    return CatchUp(value)


def _checked_most(catch_up: object, value: object) -> int:
    if value is None:
        return DEFAULT_CATCH_UP
    if catch_up != CatchUp.ALL:
        raise RegistrationError('max_catch_up= goes with catch_up="all"')
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_CATCH_UP:
        raise RegistrationError(f"max_catch_up={shown(value)}: give 1 to {MOST_CATCH_UP}")
    return value


def checked_timeout(value: Duration) -> timedelta:
    """Return *value* as a timeout that PostgreSQL can keep."""
    timeout = parse_duration(value, "timeout")
    if not timedelta(milliseconds=1) <= timeout <= LONGEST_TIMEOUT:
        raise RegistrationError("timeout must be from one millisecond to 24 days")
    return timeout


def _checked_previous(name: str, previous: Sequence[str]) -> tuple[str, ...]:
    alone = isinstance(previous, str) or not isinstance(previous, Sequence)
    names: tuple[str, ...] = (previous,) if alone else tuple(previous)  # type: ignore[assignment]
    if not all(isinstance(old, str) and JOB_NAME.fullmatch(old) for old in names):
        raise RegistrationError(f"previous_names={shown(previous)} are no job names")
    if name in names:
        raise RegistrationError("previous_names= are the names that it had before this one")
    return names


def _checked_place(on: object) -> bool:
    """Tell whether a job is to be run on a worker."""
    if on is None:
        return False
    if on != "worker":
        raise RegistrationError(f'on={shown(on)}: give "worker", or leave it out')
    require_queue()
    return True


def checked_name(name: str | None, function: Callable[..., Any], kind: str = "job") -> str:
    """Return *name*, by default the function's with dashes, as the name of a *kind* of ours."""
    if name is None:
        own = getattr(function, "__name__", "")
        name = own.strip("_").lower().replace("_", "-") if isinstance(own, str) else own
    if not isinstance(name, str) or not JOB_NAME.fullmatch(name):
        raise RegistrationError(
            f'{shown(name)} is no {kind} name: use lower-case letters, digits, "-" and "_", at '
            "most 63, the first a letter or digit"
        )
    return name


def _takes_run(function: Callable[..., Any]) -> bool:
    """Tell whether *function* wants the run, as its one argument or as a first one named so."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise RegistrationError(f"{shown(function)} does not tell its arguments") from None
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if len(required) > 1 or any(p.kind is p.KEYWORD_ONLY for p in required):
        raise RegistrationError("a job takes one argument, the run, or none")
    first = parameters[0] if parameters else None
    return bool(required) or (
        first is not None and first.name == "run" and first.kind is not first.KEYWORD_ONLY
    )


def refuse_unknown(unknown: Collection[str], make: Callable[..., Any]) -> None:
    """Raise :exc:`RegistrationError` for options that *make* does not have."""
    if not unknown:
        return
    kinds = inspect.signature(make).parameters.values()
    known = [f"{option.name}=" for option in kinds if option.kind is option.KEYWORD_ONLY]
    raise RegistrationError(
        f"there is no option {', '.join(f'{name}=' for name in unknown)}; after the name, which "
        f"has none, there are {', '.join(known)}"
    )


def refuse_deferred(function: Callable[..., Any]) -> None:
    """Raise :exc:`RegistrationError` for what is no function, or does its work after the call."""
    if not callable(function):
        raise RegistrationError(f"{shown(function)} is no function")
    called = (function, type(function).__call__)
    if any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in called):
        raise RegistrationError(
            "an async def function cannot be run here, since its transaction belongs to one "
            "thread: make it a plain function, and call asyncio.run() in it for the async part"
        )
    if any(inspect.isgeneratorfunction(f) for f in called):
        raise RegistrationError(
            "a generator function cannot be run here, since nobody would run its body: return a "
            "value instead of yielding"
        )
