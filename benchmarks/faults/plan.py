"""What will happen in a trial, all of it drawn from a seed before it begins."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from .hit import INTERVAL

WORKERS = 3
JITTER = 0.04
"""Within how many seconds all workers are hit."""
FAULT_EVERY = 1.3
FREEZE = (0.5, 6.0)
KINDS = {
    "kill": "SIGKILL of a worker and a new one",
    "freeze": "SIGSTOP and SIGCONT of a worker",
    "terminate": "pg_terminate_backend",
    "restart pooler": "PgBouncer killed and started again",
}
SHARES = {"kill": 3, "freeze": 3, "terminate": 3, "restart pooler": 1}
"""Of every ten faults."""


@dataclass(frozen=True, order=True)
class Action:
    """Something to be done so many seconds after the beginning."""

    at: float
    kind: str
    worker: int = 0
    """Who is hit, or who is hurt where nobody is at work just then."""
    slot: int = -1
    seconds: float = 0
    """How long a worker is frozen."""


@dataclass(frozen=True)
class Plan:
    """The same for every tool, though who is at work then is hurt, and nobody if none is able."""

    slots: int
    actions: tuple[Action, ...]
    repeated: frozenset[int]
    """The slots that are asked for once more after their end."""


def draw(seed: int, slots: int) -> Plan:
    """Draw hits and faults for that many *slots*, and which of them are repeated."""
    chance = random.Random(seed)
    repeated = frozenset(chance.sample(range(slots), slots // 2))
    actions = [*_hits(chance, slots), *_faults(chance, slots * INTERVAL)]
    return Plan(slots, tuple(sorted(actions)), repeated)


def _hits(chance: random.Random, slots: int) -> Iterator[Action]:
    for slot in range(slots):
        for worker in range(WORKERS):
            yield Action(slot * INTERVAL + chance.uniform(0, JITTER), "hit", worker, slot)


def _faults(chance: random.Random, seconds: float) -> Iterator[Action]:
    at = FAULT_EVERY
    deck: list[str] = []
    while at < seconds:
        if not deck:
            deck = [kind for kind, share in SHARES.items() for _ in range(share)]
            chance.shuffle(deck)
        kind = deck.pop()
        worker, frozen = chance.randrange(WORKERS), chance.uniform(*FREEZE)
        yield Action(at, kind, worker, seconds=frozen if kind == "freeze" else 0)
        at += chance.uniform(0.5 * FAULT_EVERY, 1.5 * FAULT_EVERY)
