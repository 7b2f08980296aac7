"""The checker of chaos finds each kind of fault in a made-up history, and none in a good one."""

from __future__ import annotations

import pytest

from ..chaos.checker import Effect, Verdict, check
from ..chaos.history import Event, Slot
from ..chaos.waits import Wait

BOUND = 10.0
JOB = "report"
ONE, TWO = (JOB, "one"), (JOB, "two")


def body(
    slot: Slot, run: str, begin: float, *steps: float, end: float | None = None
) -> list[Event]:
    """Return what a body writes: its steps' moments, and its end's if it came to it."""
    about = {"who": "web.1", "job": slot[0], "slot": slot[1], "run": run}
    ends = [] if end is None else [Event(end, kind="end", **about)]
    return [
        Event(begin, kind="begin", **about),
        *(Event(step, kind="step", **about) for step in steps),
        *ends,
    ]


def client(kind: str, at: float, slot: Slot, detail: str = "", run: str = "") -> Event:
    return Event(at, "client", kind, *slot, run=run, detail=detail)


def effect(slot: Slot, run: str) -> Effect:
    return (*slot, run)


GOOD = [
    client("hit", 0, ONE),
    *body(ONE, "a", 1, 1.1, 1.5, end=2),
    client("answer", 2.1, ONE, "ran", "a"),
    client("answer", 2.2, ONE, "already ran"),
    client("hit", 3, TWO),
    *body(TWO, "b", 4, 4.1),
    client("answer", 5, TWO, "failed", "b"),
    client("gave up", 5.1, TWO),
    client("answer", 5.2, TWO, "already running"),
    client("answer", 5.3, TWO, "unknown", "c"),
    *body(TWO, "c", 6, 6.1, end=7),
    client("answer", 7.1, TWO, "ran", "c"),
]
EFFECTS = [effect(ONE, "a"), effect(TWO, "c")]


def judged(
    *more: Event, effects: list[Effect] = EFFECTS, expected: tuple[Slot, ...] = (ONE, TWO)
) -> Verdict:
    """Judge the good history with *more* in it."""
    return check([*more, *GOOD], effects, set(expected), BOUND)


def only(verdict: Verdict, *fields: str) -> bool:
    """Tell whether nothing is wrong with it but in *fields*."""
    kinds = ["duplicates", "losses", "overlaps", "contradictions"]
    wrong = {kind for kind in kinds if getattr(verdict, kind)}
    wrong |= {"stuck"} if verdict.too_long else set()
    return wrong == set(fields) and not verdict.good


def test_a_good_history_is_good() -> None:
    verdict = judged()
    assert verdict.good, verdict
    assert verdict.longest == Wait(TWO, 4)
    assert str(verdict).startswith("good\n")


def test_an_empty_history_is_good() -> None:
    assert check([], [], set(), BOUND).good


def test_two_effects_of_a_slot_are_a_duplicate() -> None:
    verdict = judged(*body(ONE, "d", 8, 8.1, end=9), effects=[*EFFECTS, effect(ONE, "d")])
    assert verdict.duplicates == (ONE,)
    assert not verdict.good


def test_one_run_that_took_effect_twice_is_a_duplicate() -> None:
    verdict = judged(effects=[*EFFECTS, effect(ONE, "a")])
    assert verdict.duplicates == (ONE,)
    assert only(verdict, "duplicates")


def test_a_slot_without_effect_is_lost_whether_or_not_it_was_hit() -> None:
    never = (JOB, "three")
    assert judged(expected=(ONE, TWO, never)).losses == (never,)
    hit = judged(client("hit", 7, never), expected=(ONE, TWO, never))
    assert hit.losses == (never,)
    assert only(hit, "losses")


def test_an_effect_that_nobody_expected_is_a_contradiction() -> None:
    verdict = judged(expected=(ONE,))
    assert verdict.contradictions == ("nobody expected report two",)
    assert only(verdict, "contradictions")


def test_an_effect_of_a_run_that_nobody_saw_is_a_contradiction() -> None:
    other = ("digest", "one")
    verdict = judged(effects=[*EFFECTS, effect(other, "d")], expected=(ONE, TWO, other))
    assert verdict.contradictions == ("digest one: run d took effect, and nobody saw its body",)
    assert only(verdict, "contradictions")


OVERLAPPING = {
    "both committed": body(ONE, "x", 6.5, 6.6, end=8),
    "one inside the other": body(ONE, "x", 6.2, 6.3),
    "one around the other": body(ONE, "x", 5, 5.1, 8),
}


@pytest.mark.parametrize("other", OVERLAPPING.values(), ids=OVERLAPPING)
def test_two_bodies_of_a_job_at_once_are_an_overlap(other: list[Event]) -> None:
    verdict = judged(*other)
    [pair] = verdict.overlaps
    assert {one.run for one in pair} == {"x", "c"}
    assert not verdict.good


def test_every_overlap_with_one_long_body_is_found() -> None:
    long = body(ONE, "x", 0.5, 0.6, 20)
    assert len(judged(*long).overlaps) == 3


def test_bodies_of_two_jobs_may_overlap() -> None:
    other = ("digest", "one")
    effects = [*EFFECTS, effect(other, "d")]
    events = body(other, "d", 0, 0.1, end=9)
    assert judged(*events, effects=effects, expected=(ONE, TWO, other)).good


def test_a_body_that_lost_its_backend_counts_to_its_last_step_only() -> None:
    """It begins before another one ends, and says that it ended after that one began."""
    frozen = body(TWO, "x", 5, 5.5, end=8)
    assert judged(*frozen).good
    assert judged(*body(TWO, "x", 5, 5.5, 6.05, end=8)).overlaps


def test_a_body_that_never_did_anything_overlaps_nothing() -> None:
    assert judged(*body(TWO, "x", 6.5, end=6.6)).good


FALSE_ANSWERS = {
    "ran, without effect": client("answer", 8, ONE, "ran", "x"),
    "ran, by another slot's run": client("answer", 8, ONE, "ran", "c"),
    "ran, before its end": client("answer", 6.5, TWO, "ran", "c"),
    "failed, with effect": client("answer", 8, ONE, "failed", "a"),
    "already ran, before it began": client("answer", 0.5, ONE, "already ran"),
    "already ran, while it ran": client("answer", 1.7, ONE, "already ran"),
}


@pytest.mark.parametrize("answer", FALSE_ANSWERS.values(), ids=FALSE_ANSWERS)
def test_an_answer_that_cannot_be_true_is_a_contradiction(answer: Event) -> None:
    verdict = judged(answer)
    assert verdict.contradictions
    assert only(verdict, "contradictions")


@pytest.mark.parametrize("detail", ["ran", "already ran"])
def test_done_is_a_contradiction_where_the_slot_has_no_effect(detail: str) -> None:
    lost = (JOB, "three")
    verdict = judged(client("answer", 7, lost, detail, "x"), expected=(ONE, TWO, lost))
    assert only(verdict, "losses", "contradictions")


def test_a_run_that_works_after_its_slot_was_said_to_be_done_is_a_contradiction() -> None:
    verdict = judged(*body(ONE, "x", 2.5, 2.6))
    assert "still worked" in verdict.contradictions[0]
    assert only(verdict, "contradictions")


def test_a_body_that_begins_late_but_can_do_nothing_is_none() -> None:
    assert judged(*body(ONE, "x", 2.5)).good


def test_a_slot_that_took_too_long_is_found() -> None:
    verdict = judged(client("hit", -8.5, ONE))
    assert verdict.longest == Wait(ONE, 10.5)
    assert only(verdict, "stuck")


def test_a_slot_that_was_hit_in_vain_waits_to_the_end() -> None:
    lost = (JOB, "three")
    verdict = judged(client("hit", -8, lost), expected=(ONE, TWO, lost))
    assert verdict.longest == Wait(lost, 15.1)
    assert only(verdict, "losses", "stuck")


def test_the_summary_names_what_is_wrong_and_leaves_out_what_is_too_much() -> None:
    lost = [(JOB, f"lost-{number}") for number in range(8)]
    text = str(judged(expected=(ONE, TWO, *lost)))
    assert text.startswith("NOT GOOD\n")
    assert "8 losses\n  report lost-0\n" in text
    assert "and 3 more" in text


def test_the_order_in_which_events_are_given_does_not_matter() -> None:
    assert check(GOOD[::-1], EFFECTS, {ONE, TWO}, BOUND) == judged()
