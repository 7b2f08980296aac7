"""A whole run of chaos, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .answers import ANSWERS
from .checker import Verdict
from .history import Event


@dataclass(frozen=True)
class Report:
    """What was done, what came of it, and whether that is good."""

    seed: int
    slots: int
    seconds: float
    events: Sequence[Event]
    complaints: Sequence[str]
    """What is wrong with the database at the end."""
    verdict: Verdict

    @property
    def good(self) -> bool:
        return self.verdict.good and not self.complaints and not self.strange_answers

    @property
    def answers(self) -> Counter[str]:
        return Counter(event.detail for event in self.events if event.kind == "answer")

    @property
    def strange_answers(self) -> set[str]:
        return set(self.answers) - ANSWERS

    @property
    def faults(self) -> Counter[str]:
        details = (event.detail for event in self.events if event.kind == "fault")
        return Counter(detail.partition(":")[0] for detail in details)

    @property
    def given_up(self) -> Counter[str]:
        """Why there was no answer: a client's haste, or a broken connection."""
        return Counter(event.detail for event in self.events if event.kind == "gave up")

    def __str__(self) -> str:
        kinds = Counter(event.kind for event in self.events)
        return "\n".join(
            [
                f"seed {self.seed}: {self.slots} slots in {self.seconds:.0f} s",
                f"{kinds['hit']} hits, {kinds['begin']} bodies begun, {kinds['end']} ended",
                f"answers: {_counts(self.answers)}",
                f"no answer: {_counts(self.given_up)}",
                f"{kinds['fault']} faults: {_counts(self.faults)}",
                *(f"STRANGE ANSWER: {answer}" for answer in sorted(self.strange_answers)),
                *(f"AT THE END: {complaint}" for complaint in self.complaints),
                str(self.verdict),
            ]
        )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counter.most_common()) or "none"
