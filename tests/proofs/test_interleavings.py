"""Two runs, in every order of their steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flask_cronlock import planning
from flask_cronlock.limits import LOCK_WAIT

from ..support.databases import Database
from ..support.interleavings import IN_THE_JOB, OLDER, Theatre, Wish, theatre_on
from ..support.orders import every_order, in_turn
from ..support.verdicts import check, told, what_is_kept_is_what_was_told

WISH = Wish()
OF_ANOTHER_RELEASE = replace(WISH, release="v2:")
FAILING = replace(WISH, fails=True)
BY_STATEMENT = {
    "the same slot": [WISH, WISH],
    "the same slot, two lock keys": [OF_ANOTHER_RELEASE, WISH],
}
JOB_AS_ONE = {
    "neighbouring slots": [replace(WISH, slot=OLDER), WISH],
    "neighbouring slots, two lock keys": [replace(OF_ANOTHER_RELEASE, slot=OLDER), WISH],
    "one is forced": [replace(WISH, forced=True), WISH],
    "one is forced, two lock keys": [replace(OF_ANOTHER_RELEASE, forced=True), WISH],
    "one is renamed": [replace(WISH, renamed=True), WISH],
    "one fails": [FAILING, WISH],
    "one fails, two lock keys": [replace(FAILING, release="v2:"), WISH],
}
"""Cases in which what ``IN_THE_JOB`` lists is no step of its own: else there would be up to 12,870
orders of one case."""


@pytest.fixture(scope="module")
def opened(module_database: Database) -> Iterator[Theatre]:
    with theatre_on(module_database) as made:
        yield made


@pytest.fixture
def theatre(
    opened: Theatre, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Iterator[Theatre]:
    opened.together, opened.orders = (), 0
    yield opened
    with capsys.disabled():
        sys.stdout.write(f"\n{request.node.name}: {opened.orders} orders\n")


def play_all(theatre: Theatre, wishes: list[Wish]) -> None:
    for choose in every_order(alike=wishes[0] == wishes[1]):
        check(theatre.play(wishes, choose))
    assert theatre.orders > 100, "so few orders that the steps are no steps"


@pytest.mark.parametrize("wishes", BY_STATEMENT.values(), ids=BY_STATEMENT)
def test_two_runs_in_every_order_of_their_statements(theatre: Theatre, wishes: list[Wish]) -> None:
    play_all(theatre, wishes)


@pytest.mark.parametrize("wishes", JOB_AS_ONE.values(), ids=JOB_AS_ONE)
def test_two_runs_in_every_order_of_their_steps(theatre: Theatre, wishes: list[Wish]) -> None:
    theatre.together = IN_THE_JOB
    play_all(theatre, wishes)


@pytest.mark.parametrize("fails", [True, False], ids=["the older fails", "the older runs"])
def test_two_runs_of_a_known_job_of_which_one_finds_the_others_slot_missed(
    theatre: Theatre, fails: bool
) -> None:
    theatre.together = IN_THE_JOB
    theatre.know_the_job()
    try:
        play_all(theatre, [replace(OF_ANOTHER_RELEASE, slot=OLDER, fails=fails), WISH])
    finally:
        theatre.forget_the_job()


def test_two_runs_whose_tries_have_an_older_snapshot_than_the_lock(theatre: Theatre) -> None:
    """The statement that tries the lock is split: all that the other does can come in between."""
    theatre.together = IN_THE_JOB
    with theatre.gates():
        play_all(theatre, [WISH, WISH])


def test_a_wait_for_the_claim_runs_out(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LOCK_WAIT", LOCK_WAIT)
    played = theatre.play([OF_ANOTHER_RELEASE, WISH], in_turn("aaabbb", "b"))
    assert told(played) == {"a": "ran", "b": "already running"}
    what_is_kept_is_what_was_told(played)
