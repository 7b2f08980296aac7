"""What went over a wire, message by message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .wire_messages import READY, Side

Place = tuple[Side, int]
"""A message: who sends it, and which of that side's it is."""


class Said(NamedTuple):
    """One message, and how many answers had been waited for before it."""

    exchange: int
    place: Place
    message: bytes


@dataclass
class Tally:
    """How many messages went over the wire, and how many times an answer was waited for."""

    frontend: int = 0
    backend: int = 0
    round_trips: int = 0
    said: list[Said] = field(default_factory=list, compare=False, repr=False)

    def add(self, side: Side, message: bytes) -> int:
        """Count *message*, and return which of its side's it is."""
        if side is Side.FRONTEND:
            number = self.frontend = self.frontend + 1
        else:
            number = self.backend = self.backend + 1
        self.said.append(Said(self.round_trips, (side, number), message))
        self.round_trips += side is Side.BACKEND and message[:1] == READY
        return number

    def copy(self) -> Tally:
        return Tally(self.frontend, self.backend, self.round_trips, [*self.said])

    def places(self, *texts: bytes) -> list[Place]:
        """Return each message; or each of the exchanges in which one of *texts* was said."""
        exchanges = {
            said.exchange for said in self.said for text in texts or [b""] if text in said.message
        }
        return [said.place for said in self.said if said.exchange in exchanges]
