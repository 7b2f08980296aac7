"""`@cron.exclusive`: the decorator form of the lock."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from flask_cronlock import Ran, Reason, Skipped
from flask_cronlock.exceptions import LockNameError, NestedRun, RegistrationError

from ..support.outcomes import elsewhere, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def test_it_keeps_name_docstring_signature_arguments_and_value(world: World) -> None:
    @world.cron.exclusive("rebuild-cache")
    def rebuild(part: str, *, size: int = 1) -> tuple[str, int]:
        """Rebuild a part."""
        world.note(part)
        return part, size

    assert (rebuild.__name__, rebuild.__doc__) == ("rebuild", "Rebuild a part.")
    assert list(inspect.signature(rebuild).parameters) == ["part", "size"]
    with world.app.app_context():
        outcome = rebuild("index", size=3)
    assert isinstance(outcome, Ran)
    assert outcome.value == ("index", 3)
    assert world.notes == ["index"]


def test_two_calls_exclude_each_other(world: World) -> None:
    inside: list[Any] = []

    @world.cron.exclusive("rebuild-cache")
    def rebuild() -> None:
        inside.append(elsewhere(again))

    def again() -> Any:
        with world.app.app_context():
            return rebuild()

    value_of(again())
    assert isinstance(inside[0], Skipped)
    assert reason_of(inside[0]) is Reason.ALREADY_RUNNING


def test_a_call_of_itself_is_refused(world: World) -> None:
    @world.cron.exclusive("rebuild-cache")
    def rebuild() -> None:
        world.mark()
        rebuild()

    with world.app.app_context(), pytest.raises(NestedRun):
        rebuild()
    assert world.marks == 1


def test_an_error_is_raised_and_nothing_is_kept(world: World) -> None:
    @world.cron.exclusive("rebuild-cache")
    def rebuild() -> None:
        world.note("gone")
        raise ValueError("as asked")

    with world.app.app_context(), pytest.raises(ValueError, match="as asked"):
        rebuild()
    assert world.notes == []


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("function", [coroutine, generator])
def test_work_that_would_be_done_after_the_lock_is_refused_at_once(
    world: World, function: Any
) -> None:
    with pytest.raises(RegistrationError, match=r"asyncio\.run|instead of yielding"):
        world.cron.exclusive("rebuild-cache")(function)


def test_a_bad_name_is_refused_at_decoration(world: World) -> None:
    with pytest.raises(LockNameError):
        world.cron.exclusive("Rebuild Cache")


def test_a_forgotten_name_is_refused_at_decoration(world: World) -> None:
    def rebuild() -> None: ...

    with pytest.raises(LockNameError):
        world.cron.exclusive(rebuild)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"timeout": "never"}, {"wait": "-1s"}, {"timeout": "25d"}])
def test_a_bad_duration_is_refused_at_decoration(world: World, wrong: dict[str, str]) -> None:
    with pytest.raises(RegistrationError):
        world.cron.exclusive("rebuild-cache", **wrong)
