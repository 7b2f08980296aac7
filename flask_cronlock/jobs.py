"""Jobs and their registry."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from types import CellType
from typing import Any

from .durations import Duration, parse_duration
from .exceptions import RegistrationError, UnknownJob
from .run import Run
from .schedule import CronSchedule, EverySchedule, Schedule

logger = logging.getLogger("flask_cronlock")

JOB_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
LONGEST_TIMEOUT = timedelta(days=24)
"""PostgreSQL keeps its limits as milliseconds in 31 bits."""


@dataclass(frozen=True, slots=True)
class Job:
    """A function registered under a name."""

    name: str
    function: Callable[..., Any]
    takes_run: bool
    schedule: Callable[[str], Schedule | None]
    """Returns the schedule, in the zone given where the job names none; ``None`` without one."""
    timeout: timedelta | None = None
    max_lateness: timedelta | None = None
    previous_names: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """The name of its lock and its claims: the first that it ever had.

        So a renamed job finds what ran under an old name, and instances of an old release, which
        know no other, are kept apart from it.
        """
        return self.previous_names[0] if self.previous_names else self.name

    def call(self, run: Run) -> Any:
        """Call the function, with the run where it takes one.

        :raises TypeError: when it returned a coroutine or generator, whose work nobody would do.
        """
        return done(self.function, self.function(run) if self.takes_run else self.function())

    def is_registered_again_as(self, other: Job) -> bool:
        """Tell a module that was imported twice from two jobs that want one name."""
        return _place(self.function) == _place(other.function)


def _place(function: Any, depth: int = 3) -> object:
    """Return where *function* was written, and what it wraps; another function stands elsewhere."""
    code = getattr(function, "__code__", None)
    if code is None or depth == 0:
        return id(function)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    wrapped = tuple(_place(content, depth - 1) for content in cells if inspect.isroutine(content))
    owner = id(getattr(function, "__self__", None))
    return (code.co_filename, code.co_firstlineno, code.co_qualname, owner, wrapped)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def done(function: Callable[..., Any], value: Any) -> Any:
    """Return the *value* of *function*, or raise :exc:`TypeError` where its work was not done.

    A generator is a value like any other, unless *function* is what it was to run.
    """
    body = inspect.isgenerator(value) and value.gi_code is _code_of(function)
    if body or inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(
            f"A {type(value).__name__} was returned, whose work nobody does: call asyncio.run(), "
            "or iterate, in the function itself."
        )
    return value


def _code_of(function: Callable[..., Any]) -> object:
    inner = inspect.unwrap(function)
    return getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)


def make_job(
    function: Callable[..., Any],
    name: str | None,
    *,
    schedule: str | None = None,
    tz: str | None = None,
    every: Duration | None = None,
    timeout: Duration | None = None,
    max_lateness: Duration | None = None,
    previous_names: Sequence[str] = (),
) -> Job:
    """Return the job, or raise :exc:`RegistrationError` naming it and the cure."""
    name = _checked_name(name, function)
    try:
        refuse_deferred(function)
        if max_lateness is not None and schedule is None and every is None:
            raise RegistrationError("max_lateness= needs a schedule= or every= to be late for")
        return Job(
            name,
            function,
            _takes_run(function),
            _scheduled(schedule, tz, every),
            None if timeout is None else checked_timeout(timeout),
            None if max_lateness is None else parse_duration(max_lateness, "max_lateness"),
            _checked_previous(name, previous_names),
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
    in_zone("UTC" if tz is None else tz)
    return lambda zone: in_zone(zone if tz is None else tz)


def checked_timeout(value: Duration) -> timedelta:
    """Return *value* as a timeout that PostgreSQL can keep."""
    timeout = parse_duration(value, "timeout")
    if not timedelta(milliseconds=1) <= timeout <= LONGEST_TIMEOUT:
        raise RegistrationError("timeout must be from one millisecond to 24 days")
    return timeout


def _checked_previous(name: str, previous: Sequence[str]) -> tuple[str, ...]:
    names = (previous,) if isinstance(previous, str) else tuple(previous)
    if not all(isinstance(old, str) and JOB_NAME.fullmatch(old) for old in names):
        raise RegistrationError(f"previous_names={previous!r:.80} are no job names")
    if name in names:
        raise RegistrationError("previous_names= are the names that it had before this one")
    return names


def _checked_name(name: str | None, function: Callable[..., Any]) -> str:
    if name is None:
        name = getattr(function, "__name__", "").strip("_").lower().replace("_", "-")
    if not isinstance(name, str) or not JOB_NAME.fullmatch(name):
        raise RegistrationError(
            f'{name!r} is no job name: use lower-case letters, digits, "-" and "_", at most 63, '
            "the first a letter or digit"
        )
    return name


def _takes_run(function: Callable[..., Any]) -> bool:
    """Tell whether *function* wants the run, as its one argument or as a first one named so."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise RegistrationError(f"{function!r:.80} does not tell its arguments") from None
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


def refuse_deferred(function: Callable[..., Any]) -> None:
    """Raise :exc:`RegistrationError` for what is no function, or does its work after the call."""
    if not callable(function):
        raise RegistrationError(f"{function!r:.80} is no function")
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


class Registry:
    """The jobs of one extension object, by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def add(self, job: Job) -> None:
        """Register *job*; a second one of the name is refused, unless it is the same again."""
        for name in (job.name, *job.previous_names):
            known = self._jobs.get(name)
            if known is not None and not known.is_registered_again_as(job):
                raise RegistrationError(
                    f"Job {job.name!r}: the name is taken: {name!r} is {known.function!r}; "
                    "choose another"
                )
        if job.name in self._jobs:
            logger.info(
                "Job %s is registered again, and replaces what was written at the same place.",
                job.name,
                extra={"action": "job_replaced", "job": job.name},
            )
        self._jobs.update(dict.fromkeys((job.name, *job.previous_names), job))

    def get(self, name: str) -> Job:
        """Return the job, or raise :exc:`UnknownJob`."""
        try:
            return self._jobs[name]
        except (KeyError, TypeError):
            raise UnknownJob(repr(name)[:80]) from None

    def __contains__(self, name: object) -> bool:
        return name in self._jobs

    def __iter__(self) -> Iterator[Job]:
        jobs = {job.name: job for job in self._jobs.values()}
        return iter(sorted(jobs.values(), key=lambda job: job.name))
