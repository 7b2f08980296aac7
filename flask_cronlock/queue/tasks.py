"""The tasks of one extension object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..exceptions import ConfigError, RegistrationError, UnknownTask
from ..jobs import same_place
from ..texts import shown
from .registration import LONGEST_NAME, NO_NAMESPACE
from .task import DEFAULT_QUEUE, JOBS_QUEUE, Task

AnyTask = Callable[..., Any] | str
"""A function under ``@cron.task``, or the task's name."""


def queue_name(namespace: str, queue: str) -> str:
    """Return the name of *queue* in the database, where apps of several namespaces may be.

    It never is one of another app's that uses Procrastinate by itself, and by its default names.

    :raises ConfigError: when both together are too long for a channel of PostgreSQL.
    """
    name = f"{namespace or NO_NAMESPACE}.{queue}"
    if len(name) > LONGEST_NAME:
        raise ConfigError(
            f"the queue {name!r} is longer than {LONGEST_NAME} characters: shorten "
            "CRONLOCK_NAMESPACE or the queue's name"
        )
    return name


class Tasks:
    """The tasks of one extension object, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        """Register *task*; a second one of the name replaces it only where it is the same again."""
        known = self._tasks.get(task.name)
        if known is not None and not same_place(known.function, task.function):
            raise RegistrationError(
                f"Task {task.name!r}: the name is taken by {known.function!r}; choose another"
            )
        self._tasks[task.name] = task

    def get(self, wanted: object) -> Task:
        """Return the task of a name, or the one that a function is.

        :raises UnknownTask: when there is none.
        """
        if isinstance(wanted, str):
            found = self._tasks.get(wanted)
        else:
            found = next((task for task in self if task.function is wanted), None)
        if found is None:
            raise UnknownTask(shown(wanted))
        return found

    def check_queues(self, namespace: str) -> None:
        """Raise :exc:`ConfigError` for a *namespace* that is too long for what is known here."""
        for queue in sorted({DEFAULT_QUEUE, JOBS_QUEUE, *(task.queue for task in self)}):
            queue_name(namespace, queue)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task]:
        return iter(sorted(self._tasks.values(), key=lambda task: task.name))
