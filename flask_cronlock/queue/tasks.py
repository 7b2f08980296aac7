"""The tasks of one extension object."""

from __future__ import annotations

from collections.abc import Iterator

from ..exceptions import ConfigError, RegistrationError, UnknownTask
from ..jobs import same_place
from ..texts import shown
from .registration import LONGEST_QUEUE
from .task import Task


def queue_name(namespace: str, queue: str) -> str:
    """Return the name of *queue* in the database, where apps of several namespaces may be.

    :raises ConfigError: when both together are too long for a channel of PostgreSQL.
    """
    name = f"{namespace}.{queue}" if namespace else queue
    if len(name) > LONGEST_QUEUE:
        raise ConfigError(
            f"the queue {name!r} is longer than {LONGEST_QUEUE} characters: shorten "
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

    def queues(self, namespace: str) -> list[str]:
        """Return the queues of all tasks, as they are named in the database."""
        return sorted({queue_name(namespace, task.queue) for task in self})

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task]:
        return iter(sorted(self._tasks.values(), key=lambda task: task.name))
