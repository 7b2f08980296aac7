"""How long the slots of a history were waited for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .history import BODY, Event, Slot

Span = tuple[float, float]


@dataclass(frozen=True)
class Wait:
    """From a slot's first hit until its effect was made."""

    slot: Slot | None = None
    seconds: float = 0.0
    outage: float = 0.0
    """Of these, the seconds in which a server was recorded to be gone."""

    @property
    def excused(self) -> float:
        """The seconds that are left when the outages are taken off."""
        return self.seconds - self.outage

    def __str__(self) -> str:
        gone = f", {self.outage:.2f} s without a server apart" if self.outage else ""
        return f"{self.excused:.2f} s{gone}"


def longest(events: Sequence[Event], runs_of: Mapping[Slot, Collection[str]]) -> Wait:
    """Return the wait that is longest without outages, of *events* in their order.

    A slot that was hit and has no effect waited to the very end.
    """
    asked: dict[Slot, float] = {}
    last_words: dict[str, float] = {}
    for event in events:
        if event.kind == "hit":
            asked.setdefault((event.job, event.slot), event.at)
        elif event.kind in BODY:
            last_words[event.run] = event.at
    made = {
        slot: min((last_words[run] for run in runs if run in last_words), default=0)
        for slot, runs in runs_of.items()
    }
    very_end, gone = events[-1].at if events else 0, list(outages(events))
    waits = (_wait(slot, at, made.get(slot, very_end), gone) for slot, at in asked.items())
    return max(waits, default=Wait(), key=lambda wait: wait.excused)


def outages(events: Sequence[Event]) -> Iterator[Span]:
    """Yield from when to when a server was gone; one that never came back is no excuse."""
    since: float | None = None
    for event in events:
        if event.kind == "gone":
            since = event.at
        elif event.kind == "back" and since is not None:
            yield since, event.at
            since = None


def _wait(slot: Slot, begun: float, until: float, outages: Collection[Span]) -> Wait:
    shared = (min(until, back) - max(begun, gone) for gone, back in outages)
    return Wait(slot, until - begun, sum(seconds for seconds in shared if seconds > 0))
