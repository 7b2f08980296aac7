"""The extension object's part for jobs: how they are registered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from .durations import Duration
from .registration import make_job
from .registry import Registry

F = TypeVar("F", bound=Callable[..., Any])


class Registering:
    """What registers functions as jobs."""

    jobs: Registry

    @overload
    def job(self, name: F, /) -> F: ...

    @overload
    def job(
        self,
        name: str | None = None,
        /,
        *,
        schedule: str | None = None,
        tz: str | None = None,
        every: Duration | None = None,
        timeout: Duration | None = None,
        max_lateness: Duration | None = None,
        catch_up: Literal["latest", "all", "none"] = "latest",
        max_catch_up: int | None = None,
        previous_names: Sequence[str] = (),
        on: Literal["worker"] | None = None,
    ) -> Callable[[F], F]: ...

    def job(self, name: Any = None, /, **options: Any) -> Any:
        """Register the decorated function as a job, and return it unchanged.

        It takes the :class:`Run` as its one argument, or none. What it returns is the outcome's
        value. Without a schedule it has no slots: runs are only kept from overlapping.

        :param name: by default the function's, with dashes.
        :param schedule: a five-field cron expression.
        :param tz: the schedule's IANA time zone; default ``CRONLOCK_TIMEZONE``.
        :param every: instead of *schedule*, an interval in whole seconds from 1970-01-01 UTC.
        :param timeout: how long a run may take; default ``CRONLOCK_TIMEOUT``.
        :param max_lateness: how long after its time a slot may still be run; default: until the
            next one begins.
        :param catch_up: which slots the clock runs whose time went by without a run: the
            ``"latest"``, ``"all"`` of them, oldest first, or ``"none"``.
        :param max_catch_up: with ``"all"``, the newest how many; default 100.
        :param previous_names: those that the job had before, oldest first: it answers to them, and
            a slot that ran under one has run. Give them in the release that renames the job, and
            keep them: slots are claimed under the first of them for good.
        :param on: ``"worker"``: requests and the clock have a worker run it, asked once for each
            slot, and a request is answered at once. What is called by hand (:meth:`run`, ``flask
            cron run``, a manual clock) runs it on the spot.
        :raises RegistrationError: naming the job and the cure.
        :raises QueueMissing: with ``on="worker"`` and without the extra ``queue``.
        """

        def register(function: F, job_name: str | None = None) -> F:
            self.jobs.add(make_job(function, job_name, **options))
            return function

        return register(name) if callable(name) else functools.partial(register, job_name=name)
