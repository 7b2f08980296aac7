"""Chaos plans its faults by a seed, and takes nothing strange for good."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from ..chaos.answers import word_for
from ..chaos.checker import check
from ..chaos.faults import SHARES, plan
from ..chaos.history import Event
from ..chaos.play import past_slots
from ..chaos.report import Report


def test_the_same_seed_plans_the_same_faults_and_another_one_others() -> None:
    one, same, other = (list(islice(plan(seed, 25), 60)) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("count", [25, 1250])
def test_each_plan_has_every_kind_of_fault(count: int) -> None:
    kinds = Counter(fault.kind for fault in islice(plan(1, count), count))
    assert set(kinds) == set(SHARES)
    assert kinds["end backend"] > kinds["stop postgres"]


def test_a_past_slot_is_named_once() -> None:
    slots = past_slots(205)
    assert len(set(slots)) == len(slots) == 205


def answer(at: float, detail: str) -> Event:
    return Event(at, "client", "answer", "report", "one", detail=detail)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (200, {"outcome": "ran"}, "ran"),
        (200, {"outcome": "skipped", "reason": "already ran"}, "already ran"),
        (409, {"outcome": "skipped", "reason": "already running"}, "already running"),
        (500, {"outcome": "failed", "error": "Job failed"}, "failed"),
        (504, {"outcome": "failed", "error": "Job timed out"}, "failed"),
        (500, {"outcome": "failed", "error": "Outcome unknown"}, "unknown"),
        (503, {"error": "Database unavailable"}, "unavailable"),
        (500, {"error": "Internal error"}, "Internal error"),
    ],
)
def test_an_answer_has_its_word_in_the_history(
    status: int, body: dict[str, str], word: str
) -> None:
    assert word_for(status, body) == word


def report(*events: Event, complaints: tuple[str, ...] = ()) -> Report:
    return Report(1, 1, 1.0, events, complaints, check([], [], set(), 1))


def test_a_report_is_good_only_without_complaints_and_strange_answers() -> None:
    assert report(answer(0, "unavailable")).good
    strange = report(answer(0, "Internal error"))
    assert not strange.good
    assert "STRANGE ANSWER: Internal error" in str(strange)
    held = report(complaints=("1 advisory locks held",))
    assert not held.good
    assert "AT THE END: 1 advisory locks held" in str(held)
