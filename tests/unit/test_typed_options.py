"""What the decorators' options may be is told to type checkers too."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, get_args, get_overloads, get_type_hints

import pytest

from flask_cronlock import CronLock
from flask_cronlock.jobs import CatchUp
from flask_cronlock.queue import registration as tasks
from flask_cronlock.queue.task import Delivery
from flask_cronlock.registration import make_job


def hints_of(decorator: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of what *decorator* takes in brackets."""
    _, in_brackets = get_overloads(decorator)
    return get_type_hints(in_brackets)


@pytest.mark.parametrize(
    ("decorator", "option", "kind"),
    [(CronLock.task, "delivery", Delivery), (CronLock.job, "catch_up", CatchUp)],
)
def test_one_of_several_words_is_typed_as_these(
    decorator: Callable[..., Any], option: str, kind: type[StrEnum]
) -> None:
    assert get_args(hints_of(decorator)[option]) == tuple(kind)


@pytest.mark.parametrize(
    ("decorator", "make"), [(CronLock.task, tasks.make_task), (CronLock.job, make_job)]
)
def test_the_options_are_those_that_are_checked(
    decorator: Callable[..., Any], make: Callable[..., Any]
) -> None:
    beside = {"name", "function", "unknown", "return", "self"}
    assert hints_of(decorator).keys() - beside == make.__annotations__.keys() - beside
