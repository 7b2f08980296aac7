"""The jobs of one extension object."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from .exceptions import RegistrationError, UnknownJob
from .jobs import Job
from .texts import shown

logger = logging.getLogger("flask_cronlock")


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
            raise UnknownJob(shown(name)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._jobs

    def __iter__(self) -> Iterator[Job]:
        jobs = {job.name: job for job in self._jobs.values()}
        return iter(sorted(jobs.values(), key=lambda job: job.name))
