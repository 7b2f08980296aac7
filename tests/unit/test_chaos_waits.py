"""No slot of chaos waits for longer than the bound, but for the time without a server."""

from __future__ import annotations

import pytest

from ..chaos.checker import Verdict, check
from ..chaos.history import Event

BOUND = 10.0
SLOT = ("report", "one")


def hand(kind: str, at: float) -> Event:
    return Event(at, "faults", kind)


def judged(*outages: Event, made: float = 12) -> Verdict:
    """Judge a slot that was hit at 0, and has its effect since *made*."""
    about = {"job": SLOT[0], "slot": SLOT[1]}
    run = {"who": "web.1", "run": "a", **about}
    events = [
        Event(0, "client", "hit", **about),
        Event(made - 1, kind="begin", **run),
        Event(made - 0.5, kind="step", **run),
        Event(made, kind="end", **run),
    ]
    return check([*events, *outages], [(*SLOT, "a")], {SLOT}, BOUND)


def test_a_wait_is_too_long_where_no_server_was_gone() -> None:
    verdict = judged()
    assert verdict.too_long
    assert "longest wait of at most 10 s: 12.00 s: report one" in str(verdict)


def test_the_time_without_a_server_is_taken_off_and_told_apart() -> None:
    verdict = judged(hand("gone", 1), hand("back", 2), hand("gone", 4), hand("back", 6))
    assert verdict.good
    assert (verdict.longest.seconds, verdict.longest.outage) == (12, 3)
    assert "longest wait of at most 10 s: 9.00 s, 3.00 s without a server apart" in str(verdict)


NO_EXCUSE = {
    "over before it": [hand("gone", -9), hand("back", -1)],
    "begun after it": [hand("gone", 13), hand("back", 20)],
    "mostly before it": [hand("gone", -9), hand("back", 1)],
    "mostly after it": [hand("gone", 11), hand("back", 20)],
    "never back": [hand("gone", 1)],
    "never gone": [hand("back", 9)],
    "gone before, and back once": [hand("gone", -5), hand("back", -4), hand("back", 9)],
}


@pytest.mark.parametrize("outage", NO_EXCUSE.values(), ids=NO_EXCUSE)
def test_an_outage_excuses_what_lies_within_it_and_no_more(outage: list[Event]) -> None:
    assert judged(*outage).too_long


def test_an_outage_at_another_time_makes_no_wait_longer() -> None:
    verdict = judged(hand("gone", -9), hand("back", -1), hand("gone", 20), hand("back", 30), made=8)
    assert (verdict.longest.seconds, verdict.longest.outage) == (8, 0)


def test_silence_and_slowness_of_all_others_are_no_excuse() -> None:
    """Nobody else is told anything for as long: that may be the product's own doing."""
    others = [("report", f"other-{number}") for number in range(9)]
    events = [
        event
        for slot in others
        for event in (
            Event(0, "client", "hit", *slot),
            Event(30, "client", "answer", *slot, detail="unavailable"),
        )
    ]
    assert judged(*events).too_long


def test_the_slot_is_told_that_waited_longest_without_outages() -> None:
    other = {"job": "digest", "slot": "one"}
    run = {"who": "web.2", "run": "b", **other}
    verdict = judged(
        Event(20, "client", "hit", **other),
        hand("gone", 21),
        hand("back", 50),
        Event(51, kind="begin", **run),
        Event(52, kind="end", **run),
        made=8,
    )
    assert (verdict.longest.slot, verdict.longest.seconds) == (SLOT, 8)
