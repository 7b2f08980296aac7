"""Who was told "already running" in chaos was told so because somebody can have had the lock."""

from __future__ import annotations

import pytest

from ..chaos.checker import check
from ..chaos.history import Event

FREED_WITHIN = 5.0
JOB, OTHER = "report", "digest"


def arrive(at: float, number: int, job: str = JOB, who: str = "web.1-7") -> Event:
    return Event(at, who, "arrive", job, "one", request=number)


def leave(at: float, number: int, answer: str, job: str = JOB, who: str = "web.1-7") -> Event:
    return Event(at, who, "leave", job, "one", detail=answer, request=number)


def fault(at: float, detail: str) -> Event:
    return Event(at, "faults", "fault", detail=detail)


REFUSED = [arrive(10, 1), leave(11, 1, "already running")]


def contradictions(*more: Event) -> tuple[str, ...]:
    """Judge a history in which somebody is refused from 10 to 11."""
    return check([*more, *REFUSED], [], set(), 1, FREED_WITHIN).contradictions


def test_nobody_is_refused_where_nobody_else_asked() -> None:
    [told] = contradictions()
    assert told == (
        "report one: 'already running' was told from 10.000 to 11.000, but nobody had the lock"
    )


HELD = {
    "a run that was under way": [arrive(9, 2), leave(12, 2, "ran")],
    "one that ended while he asked": [arrive(9, 2), leave(10.1, 2, "ran")],
    "one that began while he asked": [arrive(10.9, 2), leave(12, 2, "ran")],
    "one that found its slot taken": [arrive(9, 2), leave(10.1, 2, "already ran")],
    "one of another slot before later ones": [
        *(arrive(1, 2), leave(10.5, 2, "ran")),
        *(arrive(2, 3), leave(3, 3, "ran")),
    ],
    "one that has no answer yet": [arrive(1, 2)],
    "a frozen one": [arrive(1, 2), fault(2, "freeze worker: web.1-7 for 9.00 s")],
    "one that failed just now": [arrive(7, 2), leave(7.5, 2, "failed")],
    "one whose commit was not answered": [arrive(7, 2), leave(7.5, 2, "unknown")],
    "one that lost its server": [arrive(7, 2), leave(7.5, 2, "unavailable")],
    "one whose process was killed": [
        *(arrive(1, 2, who="web.2-8"), fault(6, "kill worker: web.2-8")),
    ],
}


@pytest.mark.parametrize("holder", HELD.values(), ids=HELD)
def test_a_refusal_is_true_where_another_request_can_have_had_the_lock(
    holder: list[Event],
) -> None:
    assert contradictions(*holder) == ()


NOT_HELD = {
    "a run that had ended": [arrive(9, 2), leave(9.9, 2, "ran")],
    "two that had ended": [
        *(arrive(1, 2), leave(8, 2, "ran")),
        *(arrive(2, 3), leave(9, 3, "ran")),
    ],
    "one that had not come": [arrive(11.1, 2), leave(12, 2, "ran")],
    "another job's": [arrive(9, 2, OTHER), leave(12, 2, "ran", OTHER)],
    "one that had found its slot taken": [arrive(9, 2), leave(9.9, 2, "already ran")],
    "one that failed long ago": [arrive(4, 2), leave(6.9, 2, "failed")],
    "one whose process was killed long ago": [
        *(arrive(1, 2, who="web.2-8"), fault(4.9, "kill worker: web.2-8")),
    ],
}


@pytest.mark.parametrize("nobody", NOT_HELD.values(), ids=NOT_HELD)
def test_a_refusal_is_false_where_nobody_can_have_had_the_lock(nobody: list[Event]) -> None:
    assert len(contradictions(*nobody)) == 1


def test_two_who_refuse_each_other_are_both_wrong() -> None:
    assert len(contradictions(arrive(10, 2), leave(11, 2, "already running"))) == 2


def test_requests_are_told_apart_by_their_process() -> None:
    """The one that goes on has the number of one that ended in another process."""
    ended = arrive(1, 2), leave(2, 2, "ran")
    assert contradictions(*ended, arrive(1, 2, who="web.2-8")) == ()
    assert len(contradictions(*ended)) == 1
