"""Who was refused because the job is running: somebody must have had its lock."""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .answers import ALREADY_RUNNING, DONE
from .history import Event

KILLED = "kill worker: "
LINGERS = 3.0
"""Seconds for which a backend may outlive the answer of a run that came to no good end: the server
takes one of them to notice that nobody is there any more."""


@dataclass(frozen=True)
class Request:
    """A request, as the process wrote it down that served it."""

    job: str
    slot: str
    arrived: float
    left: float
    """When it had its answer; of one that never had any, when its process was killed."""
    answer: str = ""

    @property
    def refused(self) -> bool:
        return self.answer == ALREADY_RUNNING

    def freed(self, freed_within: float) -> float:
        """Return by when it has no lock any more: one that ran had none when it said so."""
        if not self.answer:
            return self.left + freed_within
        return self.left if self.answer in DONE else self.left + LINGERS


def unfounded(events: Sequence[Event], freed_within: float) -> Iterator[str]:
    """Find those who were refused while no other request can have had the job's lock."""
    by_job: dict[str, list[Request]] = defaultdict(list)
    for request in _requests(events):
        by_job[request.job].append(request)
    for requests in by_job.values():
        holders = [request for request in requests if not request.refused]
        arrivals = [holder.arrived for holder in holders]
        # Of all that have arrived by then, when the last one is free.
        freed = list(accumulate((holder.freed(freed_within) for holder in holders), max))
        for request in requests:
            arrived_by_then = bisect(arrivals, request.left)
            if request.refused and max(freed[:arrived_by_then][-1:], default=0) < request.arrived:
                yield (
                    f"{request.job} {request.slot}: {request.answer!r} was told from "
                    f"{request.arrived:.3f} to {request.left:.3f}, but nobody had the lock"
                )


def _requests(events: Iterable[Event]) -> list[Request]:
    """Return all requests in the order of their arrival."""
    arrived: dict[tuple[str, int], Event] = {}
    left: dict[tuple[str, int], Event] = {}
    killed: dict[str, float] = {}
    for event in events:
        if event.kind == "arrive":
            arrived[event.who, event.request] = event
        elif event.kind == "leave":
            left[event.who, event.request] = event
        elif event.kind == "fault" and event.detail.startswith(KILLED):
            killed[event.detail.removeprefix(KILLED)] = event.at
    return [
        Request(event.job, event.slot, event.at, left[number].at, left[number].detail)
        if number in left
        else Request(event.job, event.slot, event.at, killed.get(number[0], math.inf))
        for number, event in arrived.items()
    ]
