"""A job: a function, its name, its slots, and what it is allowed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import AsyncGeneratorType, CellType, CoroutineType, GeneratorType
from typing import Any

from werkzeug.local import LocalProxy

from .run import Run
from .schedule import Schedule

JOB_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
DEFAULT_CATCH_UP = 100

# As the interpreter finds them, past whatever a metaclass says of its classes.
_bases = type.__dict__["__mro__"].__get__
_names = type.__dict__["__dict__"].__get__
_name = type.__dict__["__name__"].__get__


class CatchUp(StrEnum):
    """Which slots the clock runs whose time went by without a run."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Job:
    """A function registered under a name."""

    name: str
    function: Callable[..., Any]
    takes_run: bool
    schedule: Callable[[str], Schedule | None]
    """Returns the schedule, in the zone given where the job names none; ``None`` without one."""
    timeout: timedelta | None = None
    max_lateness: timedelta | None = None
    catch_up: CatchUp = CatchUp.LATEST
    max_catch_up: int = DEFAULT_CATCH_UP
    """How many slots are caught up at most where *catch_up* is ``all``."""
    previous_names: tuple[str, ...] = ()
    on_worker: bool = False
    """Whether hits and the clock hand its runs over to a worker."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that it was ever called, oldest first; a run takes the locks of all."""
        return (*self.previous_names, self.name)

    @property
    def identity(self) -> str:
        """The name that it claims slots under: the first that it ever had.

        So a renamed job finds what ran under an old name, and instances of an old release, which
        know no other, find what ran under the new one.
        """
        return self.names[0]

    def call(self, run: Run) -> Any:
        """Call the function, with the run where it takes one.

        :raises TypeError: when it returned a coroutine or generator, whose work nobody would do.
        """
        return done(self.function, self.function(run) if self.takes_run else self.function())

    def is_registered_again_as(self, other: Job) -> bool:
        """Tell a module that was imported twice from two jobs that want one name."""
        return same_place(self.function, other.function)


def same_place(function: Any, other: Any) -> bool:
    """Tell whether two functions were written at one place, and wrap the same."""
    return _place(function) == _place(other)


def _place(function: Any, depth: int = 3) -> object:
    """Return where *function* was written, and what it wraps; another function stands elsewhere."""
    code = getattr(function, "__code__", None)
    if code is None or depth == 0:
        return id(function)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    wrapped = tuple(_place(content, depth - 1) for content in cells if inspect.isroutine(content))
    owner = id(getattr(function, "__self__", None))
    return (code.co_filename, code.co_firstlineno, code.co_qualname, owner, wrapped)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def done(function: Callable[..., Any], value: Any) -> Any:
    """Return the *value* of *function*, or raise :exc:`TypeError` where its work was not done.

    A generator is a value like any other, unless *function* is what it was to run.
    """
    kind = type(value)
    body = kind is GeneratorType and value.gi_code is _code_of(function)
    if body or _is_deferred(value):
        if kind is CoroutineType:
            value.close()
        raise TypeError(
            f"A {_name(kind)} was returned, whose work nobody does or waits for: call "
            "asyncio.run() or result(), or iterate, in the function itself."
        )
    return value


def _is_deferred(value: Any) -> bool:
    """Tell whether *value* is work still to be done; by its type, since what it says of its class
    may raise, and since Flask's proxies can be awaited whatever is behind them."""
    kind = type(value)
    if kind is GeneratorType:
        return bool(value.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)
    bases = _bases(kind)
    if LocalProxy in bases:
        return False
    named = (names["__await__"] for names in map(_names, bases) if "__await__" in names)
    return kind is AsyncGeneratorType or Future in bases or next(named, None) is not None


def _code_of(function: Callable[..., Any]) -> object:
    inner = inspect.unwrap(function)
    return getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
