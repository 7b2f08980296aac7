"""Judge a history: pure, so that it can be tried on made-up ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .answers import DONE
from .history import BODY, Event, Slot
from .refusals import unfounded
from .waits import Wait, longest

Effect = tuple[str, str, str]
"""A row that the database holds at the end: job, slot, run."""


@dataclass(frozen=True)
class Body:
    """One execution of a job, for as long as it provably had power in the database."""

    job: str
    slot: str
    run: str
    begun: float
    until: float | None
    """The last proven moment; none where nothing was proven after it began."""

    def overlaps(self, other: Body) -> bool:
        if self.until is None or other.until is None:
            return False
        return self.begun < other.until and other.begun < self.until

    def __str__(self) -> str:
        until = self.begun if self.until is None else self.until
        return f"{self.job} {self.slot} run {self.run} [{self.begun:.3f}, {until:.3f}]"


@dataclass(frozen=True)
class Verdict:
    """All that is wrong with a history."""

    duplicates: tuple[Slot, ...]
    losses: tuple[Slot, ...]
    overlaps: tuple[tuple[Body, Body], ...]
    contradictions: tuple[str, ...]
    longest: Wait
    bound: float

    @property
    def too_long(self) -> bool:
        return self.longest.excused > self.bound

    @property
    def good(self) -> bool:
        wrong = self.duplicates or self.losses or self.overlaps or self.contradictions
        return not wrong and not self.too_long

    def __str__(self) -> str:
        lines = [
            "good" if self.good else "NOT GOOD",
            *_listed("duplicates", [" ".join(slot) for slot in self.duplicates]),
            *_listed("losses", [" ".join(slot) for slot in self.losses]),
            *_listed("overlaps", [f"{one} with {two}" for one, two in self.overlaps]),
            *_listed("contradictions", self.contradictions),
            f"longest wait of at most {self.bound:.0f} s: {self.longest}"
            + (f": {' '.join(self.longest.slot)}" if self.longest.slot else ""),
        ]
        return "\n".join(lines)


def _listed(title: str, found: Sequence[str], most: int = 5) -> list[str]:
    more = [f"  and {len(found) - most} more"] if len(found) > most else []
    return [f"{len(found)} {title}", *(f"  {line}" for line in found[:most]), *more]


def check(
    events: Iterable[Event],
    effects: Iterable[Effect],
    expected: Collection[Slot],
    bound: float,
    freed_within: float = 0.0,
) -> Verdict:
    """Judge *events* by the *effects* that the database holds at the end.

    *expected* are the slots that were to happen, *bound* the seconds that one may take from its
    first hit to its effect, but for outages, *freed_within* those for which a lock may outlive the
    process that had it. A body writes its "end" before its effect is committed.
    """
    events, effects = sorted(events, key=lambda event: event.at), list(effects)
    runs_of: dict[Slot, list[str]] = defaultdict(list)
    for job, slot, run in effects:
        runs_of[job, slot].append(run)
    bodies = list(_bodies(events, {run for _, _, run in effects}))
    return Verdict(
        duplicates=tuple(sorted(slot for slot, runs in runs_of.items() if len(runs) > 1)),
        losses=tuple(sorted(set(expected) - set(runs_of))),
        overlaps=tuple(_overlaps(bodies)),
        contradictions=(
            *(f"nobody expected {' '.join(slot)}" for slot in sorted(set(runs_of) - set(expected))),
            *_unseen(events, effects),
            *_false_answers(events, effects, runs_of),
            *_alive_after_done(events),
            *unfounded(events, freed_within),
        ),
        longest=longest(events, runs_of),
        bound=bound,
    )


def _bodies(events: Sequence[Event], committed: Collection[str]) -> Iterator[Body]:
    """Tell how long each body had power: to its end if it was committed, else its last step."""
    begun: dict[str, Event] = {}
    until: dict[str, float] = {}
    for event in events:
        if event.kind == "begin":
            begun[event.run] = event
        elif event.kind == "step" or (event.kind == "end" and event.run in committed):
            until[event.run] = max(event.at, until.get(event.run, event.at))
    for run, event in begun.items():
        yield Body(event.job, event.slot, run, event.at, until.get(run))


def _overlaps(bodies: Iterable[Body]) -> Iterator[tuple[Body, Body]]:
    by_job: dict[str, list[Body]] = defaultdict(list)
    for body in sorted(bodies, key=lambda body: body.begun):
        # Only those that had power for longer than until this one began can overlap it.
        before = by_job[body.job]
        before[:] = [one for one in before if (one.until or one.begun) > body.begun]
        yield from ((one, body) for one in before if one.overlaps(body))
        before.append(body)


def _unseen(events: Sequence[Event], effects: Sequence[Effect]) -> Iterator[str]:
    seen = {event.run for event in events if event.kind in BODY}
    for job, slot, run in effects:
        if run not in seen:
            yield f"{job} {slot}: run {run} took effect, and nobody saw its body"


def _false_answers(
    events: Sequence[Event], effects: Sequence[Effect], runs_of: dict[Slot, list[str]]
) -> Iterator[str]:
    slot_of = {run: (job, slot) for job, slot, run in effects}
    last_words = {event.run: event.at for event in events if event.kind in BODY}
    for event in events:
        if event.kind != "answer":
            continue
        told = f"{event.job} {event.slot}: {event.detail!r} {event.run} at {event.at:.3f}"
        slot = event.job, event.slot
        if event.detail == "failed" and event.run in slot_of:
            yield f"{told}, but it took effect"
        elif event.detail == "ran" and slot_of.get(event.run) != slot:
            yield f"{told}, but that run has no effect"
        elif event.detail in DONE and slot not in runs_of:
            yield f"{told}, but the slot has no effect"
        elif event.detail in DONE and all(
            last_words.get(run, event.at) > event.at for run in runs_of[slot]
        ):
            yield f"{told}, but nothing was committed by then"


def _alive_after_done(events: Sequence[Event]) -> Iterator[str]:
    """Find runs that had power over a slot after somebody had been told that it is done.

    A body may begin that late where it was frozen before its first line; but it can do nothing.
    """
    done: dict[Slot, Event] = {}
    alive: dict[str, Event] = {}
    for event in events:
        slot = event.job, event.slot
        if event.kind == "answer" and event.detail in DONE:
            done.setdefault(slot, event)
        elif event.kind == "step" and slot in done:
            alive.setdefault(event.run, event)
    for run, event in alive.items():
        told = done[event.job, event.slot]
        yield (
            f"{event.job} {event.slot}: run {run} still worked at {event.at:.3f}, "
            f"{told.detail!r} was told at {told.at:.3f}"
        )
