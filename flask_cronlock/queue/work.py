"""Working off one row of the queue: each of its items that has not ended yet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import Flask

from ..exceptions import OutcomeUnknown, Unavailable
from ..state import AppState
from ..telling import log_words
from .desk import Desk
from .item import Item
from .origin import Origin
from .outside import do_outside
from .records import BUSY, ENDED, Record, State
from .tally import Tally
from .task import Delivery, Task
from .within import do_alone, do_together

logger = logging.getLogger("flask_cronlock")

Stopping = Callable[[], bool]
"""Tells whether the worker is to end, so that what is not begun is put back."""
SOON = timedelta(seconds=5)
WHEN_UNAVAILABLE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A row of the queue, as a worker has it in hand."""

    id: int
    attempts: int
    """How often it was in a worker's hands before."""
    args: Mapping[str, Any]


class Redeliver(Exception):
    """The row is to be put back, and to be due after a wait, or at once."""

    def __init__(self, wait: timedelta | None = None) -> None:
        super().__init__(f"due again in {wait}" if wait else "due again at once")
        self.wait = wait


class UnknownHere(Exception):
    """This worker's code has no task of the row's name, or it takes other arguments: that of
    another release may know better."""


class GivenUp(Exception):
    """Of the row's items some failed for good, or are in doubt, and the others are done."""


def work_off(
    app: Flask, state: AppState, task: Task, delivered: Delivered, stopping: Stopping
) -> Tally:
    """Call *task* for each item of the row that has not ended, and say what became of them.

    :raises Redeliver: when some are to be tried again.
    :raises GivenUp: when none is, and some have failed or are in doubt.
    :raises UnknownHere: before anything is done, when the arguments are those of another release.
    """
    tally = Tally(task.name, delivered.id)
    with app.app_context():
        desk = Desk(app, state, task, delivered.id)
        try:
            _work_off(desk, delivered, tally, stopping)
        except (Unavailable, OutcomeUnknown) as error:
            words, _ = log_words(error, state.config.secrets)
            _log(logging.WARNING, "row_unavailable", tally, f" so far; put back, since: {words}")
            raise Redeliver(WHEN_UNAVAILABLE) from None
    return tally


def _work_off(desk: Desk, delivered: Delivered, tally: Tally, stopping: Stopping) -> None:
    items = _items(desk.task, delivered.args)
    for item in items.values():
        _refuse_unknown(desk.task, item)
    records = desk.look(list(items))
    ended = {key for key, record in records.items() if record.state in ENDED}
    todo = [item for key, item in items.items() if key not in ended]
    tally.known = len(ended)
    in_database = desk.task.delivery is Delivery.ONCE
    if in_database and len(todo) > 1 and not records and delivered.attempts == 0:
        todo = _together(desk, todo, tally, stopping)
    waits: list[timedelta] = []
    for number, item in enumerate(todo):
        if stopping():
            tally.left = len(todo) - number
            break
        fate = _do(desk, item, in_database, delivered.attempts > 0)
        tally.count(fate.state if fate else None)
        if fate and fate.state in (State.STARTED, State.WAITING):
            waits.append(desk.task.wait_after(fate.attempts) if fate.attempts else SOON)
    _end(desk, tally, waits)


def _refuse_unknown(task: Task, item: Item) -> None:
    """Raise before an attempt is counted where the function cannot be called with the arguments."""
    try:
        task.signature.bind(**item.arguments)
    except TypeError as error:
        raise UnknownHere(f"the task here does not take its arguments: {error}") from None


def _items(task: Task, args: Mapping[str, Any]) -> dict[str, Item]:
    """Return the items by key, and so each of them once."""
    origin = Origin.from_json(args["origin"])
    items = (Item.of(task, origin, arguments) for arguments in args["items"])
    return {item.key: item for item in items}


def _together(desk: Desk, items: list[Item], tally: Tally, stopping: Stopping) -> list[Item]:
    """Do *items* in as few transactions as there is time in one; return those that were not done.

    One that fails undoes the others of its transaction: then they are done one by one.
    """
    try:
        while items and not stopping():
            left = do_together(desk, items, stopping)
            tally.done += len(items) - len(left)
            if len(left) == len(items):
                break
            items = left
    except (Unavailable, OutcomeUnknown):
        raise
    except BaseException:
        logger.debug("Task %s: now its items one by one.", desk.task.name, exc_info=True)
    return items


def _do(desk: Desk, item: Item, in_database: bool, was_delivered: bool) -> Record | None:
    """Do one item; ``None`` if it has ended already.

    Where its row was in a worker's hands before, that one may have died of it: then an attempt is
    counted first, so that no item is the death of workers without end.
    """
    if not in_database:
        return do_outside(desk, item)
    if not was_delivered:
        return do_alone(desk, item, counted=False)
    counted = desk.begin(item, follows=True)
    if counted is BUSY:
        return counted
    return do_alone(desk, item, counted=True) if counted else desk.abandon(item)


def _end(desk: Desk, tally: Tally, waits: list[timedelta]) -> None:
    if tally.left or waits:
        wait = None if tally.left else max(waits)
        _log(logging.INFO, "row_put_back", tally, "")
        raise Redeliver(wait)
    if tally.doubt or tally.failed:
        _log(logging.ERROR, "row_given_up", tally, "; `flask cron items` lists them")
        raise GivenUp(str(tally))
    _log(logging.INFO, "row_done", tally, "")


def _log(level: int, action: str, tally: Tally, more: str) -> None:
    extra = {"action": action, "task": tally.task, "row": tally.row}
    logger.log(level, "%s%s.", tally, more, extra=extra)
