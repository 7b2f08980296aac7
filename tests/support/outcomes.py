"""Say what an outcome must be, and get what is in it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from flask_cronlock import Failed, Ran, Reason, Skipped

T = TypeVar("T")

LONG = "1000d"
"""An interval whose slots no test run can straddle."""


def value_of(outcome: object) -> Any:
    assert isinstance(outcome, Ran), outcome
    return outcome.value


def reason_of(outcome: object) -> Reason:
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


def error_of(outcome: object) -> BaseException:
    assert isinstance(outcome, Failed), outcome
    return outcome.error


def elsewhere(call: Callable[[], T]) -> T:
    """Make *call* in a thread of its own: outside the caller's run, session and connection."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(60)
