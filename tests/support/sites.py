"""The servers and ways on which a promise about time is tried."""

from __future__ import annotations

from dataclasses import dataclass

from .databases import Database

BRISK = 2.5
"""A timeout in seconds: soon up, but not before the run of a busy machine has begun."""
SLACK = 3
"""Seconds that a busy machine may take for anything; no promise is as long as that."""


@dataclass(frozen=True)
class Site:
    """A database, the app's way to it, and what its server can hold a run to."""

    database: Database
    url: str
    whole: bool = True
    """Whether the server has a limit for a whole transaction: PostgreSQL 17 and later."""

    def free_within(self, timeout: float) -> float:
        """Return the seconds from a run's start after which its lock must be free."""
        return (timeout + 1 if self.whole else 2 * timeout) + SLACK
