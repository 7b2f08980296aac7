"""Interleaved rounds: the ways take turns, so that a busy moment of the machine meets them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Way = Callable[[], None]

WARM_UP = 2
"""Rounds that are not counted: connections are made, and caches filled."""


@dataclass(frozen=True)
class Ratio:
    """How many times as long one way took as another: the rounds' median, lowest and highest."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"**{self.median:.2f}** [{self.low:.2f}–{self.high:.2f}]"


@dataclass(frozen=True)
class Timing:
    """The seconds that one operation took, by way, one figure for each round."""

    name: str
    seconds: Mapping[str, list[float]]
    batch: int

    @property
    def rounds(self) -> int:
        return len(next(iter(self.seconds.values())))

    def median(self, way: str) -> float:
        return median(self.seconds[way])

    def ratio(self, way: str, base: str) -> Ratio:
        """Return the ratio of *way* to *base*, taken within each round."""
        pairs = zip(self.seconds[way], self.seconds[base], strict=True)
        ratios = [mine / others for mine, others in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))


@dataclass(frozen=True)
class Case:
    """One thing to do, and the ways to do it."""

    name: str
    ways: Mapping[str, Way]

    def time(self, rounds: int, batch: int, after: Way = lambda: None) -> Timing:
        """Time *rounds* of *batch* operations in each way, forwards and backwards in turn.

        *after* each batch something may be done that is not timed.
        """
        seconds: dict[str, list[float]] = {way: [] for way in self.ways}
        for number in range(-WARM_UP, rounds):
            for way in list(self.ways)[:: 1 if number % 2 else -1]:
                took = _batch(self.ways[way], batch)
                if number >= 0:
                    seconds[way].append(took / batch)
                after()
        return Timing(self.name, seconds, batch)


def _batch(way: Way, batch: int) -> float:
    begun = perf_counter()
    for _ in range(batch):
        way()
    return perf_counter() - begun
