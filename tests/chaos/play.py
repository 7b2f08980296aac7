"""One run of chaos, from the first hit to the verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from . import checker, history
from .app import JOBS, TIMEOUT
from .clients import PATIENCE, Clients
from .faults import LONGEST_FREEZE, Hand
from .history import Recorder, Slot
from .remains import complaints, effects_in, wait_for_quiet
from .report import Report
from .stage import stage

SLOTS_A_FAULT = 8
LEAST_FAULTS = 25
TELL_EVERY = 5.0
FREED_WITHIN = TIMEOUT + 2
"""Seconds after a run's begin by which its lock is free, whatever became of its process."""
START = 5.0
"""Seconds in which a new worker comes up on a busy machine."""
BOUND = 2 * (FREED_WITHIN + LONGEST_FREEZE + PATIENCE + START)
"""Seconds that any slot may take from its first hit to its effect, but for recorded outages.

In the worst case a run is frozen, and nothing but the server's limit frees its lock; the next
client meets a frozen worker, and waits for it in vain; the others are killed just then. And as the
faults do not wait for one another, the same may happen once more.
"""


def past_slots(count: int) -> list[Slot]:
    """Return slots of the last minutes, the same number of each job, oldest first."""
    each = -(-count // len(JOBS))
    newest = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    times = [newest - timedelta(seconds=ago) for ago in range(each)][::-1]
    texts = [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in times]
    return [(job, slot) for slot in texts for job in JOBS][:count]


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
    verdict = checker.check(events, effects, set(expected), BOUND, FREED_WITHIN)
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
