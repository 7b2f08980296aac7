"""What became of the items of one row of the queue."""

from __future__ import annotations

from dataclasses import dataclass

from .records import State


@dataclass(slots=True)
class Tally:
    """How many items ended how."""

    task: str
    row: int
    """The queue's number of it."""
    done: int = 0
    known: int = 0
    """Done, or given up, before."""
    waiting: int = 0
    """To be tried again, or in another worker's hands."""
    doubt: int = 0
    failed: int = 0
    left: int = 0
    """Not begun, since the worker is to end."""

    def count(self, state: State | None) -> None:
        """Count one more item; ``None``: it had ended before."""
        match state:
            case State.DONE:
                self.done += 1
            case State.STARTED | State.WAITING:
                self.waiting += 1
            case State.DOUBT:
                self.doubt += 1
            case State.FAILED:
                self.failed += 1
            case None:
                self.known += 1

    def __str__(self) -> str:
        words = {
            "done": self.done,
            "ended before": self.known,
            "to be tried again": self.waiting,
            "in doubt": self.doubt,
            "failed": self.failed,
            "left for later": self.left,
        }
        counted = ", ".join(f"{count} {word}" for word, count in words.items() if count)
        return f"Task {self.task}, queue row {self.row}: {counted or 'nothing to do'}"
