"""Orders in which several runs take their steps: every one that there is, or random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from .stepping import Runner, Stage

Choose = Callable[[Stage], Runner]
"""Returns whose step is to be taken next."""


def play(stage: Stage, choose: Choose) -> None:
    """Let all runs of *stage* come to their ends, in the order that *choose* makes."""
    while not stage.over:
        assert stage.ready, f"each waits for another: {stage}"
        stage.step(choose(stage))


def every_order(alike: bool = False) -> Iterator[Choose]:
    """Yield a way to choose for each order that there is, as the one before it has shown.

    The next one takes the same steps as far as it can, and then one that was not yet taken there.

    :param alike: all runs are the same, so that it does not matter whose step is the first.
    """
    path: list[int] = []
    while True:
        taken: list[tuple[int, int]] = []
        yield _along(path, taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if len(taken) <= alike:
            return
        path = [place for place, _ in taken]
        path[-1] += 1


def _along(path: list[int], taken: list[tuple[int, int]]) -> Choose:
    def choose(stage: Stage) -> Runner:
        place = path[len(taken)] if len(taken) < len(path) else 0
        taken.append((place, len(stage.ready)))
        return stage.ready[place]

    return choose


def random_order(seed: int) -> Choose:
    chance = random.Random(seed)
    return lambda stage: chance.choice(stage.ready)


def in_turn(names: str, until_it_waits_no_more: str) -> Choose:
    """Take the steps of *names*, let one's wait run out, and then let that one go first."""
    turns = list(names)

    def choose(stage: Stage) -> Runner:
        if turns:
            return stage.named(turns.pop(0))
        waiting = stage.named(until_it_waits_no_more)
        stage.wait_for(waiting)
        return waiting if waiting.held else stage.ready[0]

    return choose
