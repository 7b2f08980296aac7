"""What is taken out, what it is there for, and which test turns red without it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Invariant(StrEnum):
    """What holds whatever happens; each is kept by several mechanisms."""

    ONCE = "A slot has at most one success."
    NOTHING_LEFT = "A run that failed leaves its attempt and nothing else; its slot can run again."
    NO_OVERLAP = "Two runs of one job never overlap, and the loser is answered at once."
    CLEAN_BACKEND = "After a run its connection and its backend are as they were before."
    DATABASE_TIME = "Where time decides, it is the database's, and zones do not change keys."
    HISTORY = "What was pruned is not run again, and skipping writes nothing."
    DUE = "A slot is due while it is neither claimed nor beyond its policy."
    SECRETS = "Nothing runs without a secret, and neither secrets nor errors get out."
    ONE_CONNECTION = "A run takes one connection, and never waits for a second one."
    NOT_SILENT = "What cannot be guaranteed is refused, or named in the outcome or the log."

    @property
    def word(self) -> str:
        """Its name in a table."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Mechanism:
    """A piece of the package's source, and what it becomes where the mechanism is out."""

    name: str
    keeps: str
    """In one sentence what holds because of it."""
    invariant: Invariant
    file: str
    """Below ``flask_cronlock``."""
    source: str
    instead: str
    test_file: str
    """Below ``tests``."""
    test: str
    """The quickest one that turns red."""
    step: int | None = None
    """Of docs/a-run.md; ``None`` outside a run."""

    @property
    def test_id(self) -> str:
        """What pytest calls the test."""
        return f"tests/{self.test_file}::{self.test}"

    def without(self, package: Path) -> str:
        """Return the text of :attr:`file` in *package* without the mechanism."""
        text = (package / self.file).read_text(encoding="utf-8")
        if text.count(self.source) != 1:
            raise ValueError(f"{self.name}: its source is not once in {self.file}")
        return text.replace(self.source, self.instead)
