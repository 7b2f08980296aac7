"""One run of chaos, from the first hit to the verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

from . import checker, history
from .app import JOBS, TIMEOUT
from .checker import DONE, Slot
from .clients import PATIENCE, Clients
from .faults import LONGEST_FREEZE, Hand
from .history import Event, Recorder
from .remains import complaints, effects_in, wait_for_quiet
from .report import Report
from .stage import stage

SLOTS_A_FAULT = 8
LEAST_FAULTS = 25
TELL_EVERY = 5.0
FREED_WITHIN = TIMEOUT + 2
"""Seconds after a run's begin by which its lock is free, whatever became of its process."""
MOST_EXCUSED = 30.0
"""Seconds that a machine's silence, or its slowness, adds to the bound at most."""


def past_slots(count: int) -> list[Slot]:
    """Return slots of the last minutes, the same number of each job, oldest first."""
    each = -(-count // len(JOBS))
    newest = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    times = [newest - timedelta(seconds=ago) for ago in range(each)][::-1]
    texts = [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in times]
    return [(job, slot) for slot in texts for job in JOBS][:count]


def bound(events: Sequence[Event]) -> float:
    """Return the seconds that any slot may take from its first hit to its effect.

    In the worst case a run is frozen, and nothing but the server's limit frees its lock; the next
    client meets a frozen worker, and waits for it in vain; then nobody is answered at all. And as
    the faults do not wait for one another, the same may happen once more. On a busy machine all
    takes longer: what is stuck is so by far more than the usual slot.
    """
    outage = min(longest_silence(events), MOST_EXCUSED)
    slowness = min(10 * usual_wait(events), MOST_EXCUSED)
    return 2 * (FREED_WITHIN + LONGEST_FREEZE + PATIENCE + outage) + slowness


def longest_silence(events: Sequence[Event]) -> float:
    """Return the longest time in which no client was told of any slot that it is done.

    Servers are gone then, or workers come up, or the machine is too busy for anything: a single
    job that is stuck does not keep the others from being answered.
    """
    first = [event.at for event in events if event.kind == "hit"][:1]
    told = [event.at for event in events if event.kind == "answer" and event.detail in DONE]
    return max((after - before for before, after in pairwise([*first, *told])), default=0.0)


def usual_wait(events: Sequence[Event]) -> float:
    """Return the median of the times from a slot's first hit until it was said to be done."""
    asked: dict[Slot, float] = {}
    told: dict[Slot, float] = {}
    for event in events:
        if event.kind == "hit":
            asked.setdefault((event.job, event.slot), event.at)
        elif event.kind == "answer" and event.detail in DONE:
            told.setdefault((event.job, event.slot), event.at)
    return median([told[slot] - at for slot, at in asked.items() if slot in told] or [0.0])


def play(
    folder: Path, seed: int, slots: int, instances: int, tell: Callable[[str], None]
) -> Report:
    """Hit every slot until it is done, under faults; judge what is left."""
    expected = past_slots(slots)
    with (
        stage(folder, seed, instances) as made,
        closing(Recorder(folder, "clients")) as clients_told,
        closing(Recorder(folder, "faults")) as faults_told,
    ):
        tell(f"{instances} instances are up, their history is in {folder}")
        clients = Clients(made, clients_told, seed, expected)
        hand = Hand(made, faults_told, seed, max(LEAST_FAULTS, slots // SLOTS_A_FAULT), slots)
        begun = time.monotonic()
        with (
            beside(lambda over: _tell_progress(clients, hand, tell, over)),
            beside(clients.come_late),
            beside(lambda over: hand.work(clients.slots_done, over)),
        ):
            clients.work()
            hand.did_all.wait()
        seconds = time.monotonic() - begun
        made.thaw_all()
        wait_for_quiet(made.database, 2 * FREED_WITHIN)
        effects = effects_in(made.database)
        wrong = complaints(made.database, effects)
    events = history.read(folder)
    verdict = checker.check(events, effects, set(expected), bound(events))
    return Report(seed, slots, seconds, events, wrong, verdict)


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do *work* in a thread beside the block; it is told when that is over."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work, over)
        try:
            yield
        finally:
            over.set()
        working.result()


def _tell_progress(
    clients: Clients, hand: Hand, tell: Callable[[str], None], over: threading.Event
) -> None:
    while not over.wait(TELL_EVERY):
        tell(f"{clients.done} slots done, {hand.done} faults")
