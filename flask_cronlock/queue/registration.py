"""From a function and what was said of it to a task; whatever is wrong is refused here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from ..durations import Duration, parse_duration
from ..exceptions import RegistrationError
from ..registration import checked_name, checked_timeout, refuse_deferred, refuse_unknown
from ..texts import shown
from .extra import require_queue
from .task import DEFAULT_ATTEMPTS, DEFAULT_BACKOFF, DEFAULT_QUEUE, RUN_TASK, Delivery, Task

QUEUE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
NO_NAMESPACE = "cronlock"
"""What stands in the place of a namespace before a queue's name."""
LONGEST_NAME = 40
"""Procrastinate names its channels after queues, and PostgreSQL's names end at 63 bytes."""
LONGEST_QUEUE = LONGEST_NAME - len("n.")
"""So much the shortest namespace leaves of it."""
MOST_ATTEMPTS = 100
ITEM = "item"
"""The parameter that is handed the item."""


def make_task(
    function: Callable[..., Any],
    name: str | None,
    /,
    *,
    queue: str = DEFAULT_QUEUE,
    delivery: str = Delivery.ONCE,
    attempts: int = DEFAULT_ATTEMPTS,
    backoff: Duration = DEFAULT_BACKOFF,
    timeout: Duration | None = None,
    key: str | Sequence[str] = (),
    **unknown: object,
) -> Task:
    """Return the task, or raise :exc:`RegistrationError` naming it and the cure."""
    require_queue()
    name = checked_name(name, function, "task")
    try:
        if name == RUN_TASK:
            raise RegistrationError('the name is that of runs of jobs under on="worker"')
        refuse_unknown(unknown, make_task)
        refuse_deferred(function)
        signature, takes_item = _signature_of(function)
        return Task(
            name,
            function,
            signature,
            takes_item,
            queue=_checked_queue(queue),
            delivery=_checked_delivery(delivery),
            attempts=_checked_attempts(attempts),
            backoff=parse_duration(backoff, "backoff"),
            timeout=None if timeout is None else checked_timeout(timeout),
            key=_checked_key(signature, key),
        )
    except RegistrationError as error:
        error.args = (f"Task {name!r}: {error}",)
        raise


def _signature_of(function: Callable[..., Any]) -> tuple[inspect.Signature, bool]:
    """Return what *function* takes but for the item, and whether it takes that."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    if kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
        raise RegistrationError("its arguments are given by name: take no positional ones")
    others = [parameter for parameter in parameters if parameter.name != ITEM]
    return signature.replace(parameters=others), len(others) < len(parameters)


def _checked_queue(queue: object) -> str:
    if not isinstance(queue, str) or not QUEUE_NAME.fullmatch(queue) or len(queue) > LONGEST_QUEUE:
        raise RegistrationError(
            f'queue={shown(queue)}: use lower-case letters, digits, "-" and "_", '
            f"at most {LONGEST_QUEUE}, and {LONGEST_NAME} with the namespace and a dot"
        )
    return queue


def _checked_delivery(delivery: object) -> Delivery:
    if not isinstance(delivery, str) or delivery not in list(Delivery):
        raise RegistrationError(f"delivery={shown(delivery)}: give {', '.join(Delivery)}")
    return Delivery(delivery)


def _checked_attempts(attempts: object) -> int:
    whole = isinstance(attempts, int) and not isinstance(attempts, bool)
    if not isinstance(attempts, int) or not whole or not 1 <= attempts <= MOST_ATTEMPTS:
        raise RegistrationError(f"attempts={shown(attempts)}: give 1 to {MOST_ATTEMPTS}")
    return attempts


def _checked_key(signature: inspect.Signature, key: object) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise RegistrationError(f"key={shown(key)}: name one argument, or list several")
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name in names:
        if name not in signature.parameters and not open_ended:
            raise RegistrationError(f"key={shown(key)}: the function has no argument {name!r}")
    return tuple(names)
