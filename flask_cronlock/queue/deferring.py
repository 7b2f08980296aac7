"""The extension object's part for slow work: tasks, and deferring them from anywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from sqlalchemy.orm import Session, scoped_session

from ..durations import Duration
from ..state import AppState
from .fanout import Source
from .handoff import Handoff
from .once import is_first
from .origin import Origin
from .registration import make_task
from .task import DEFAULT_ATTEMPTS, DEFAULT_BACKOFF, DEFAULT_QUEUE
from .tasks import AnyTask, Tasks

F = TypeVar("F", bound=Callable[..., Any])
AnySession = Session | scoped_session[Any]


class Deferring:
    """What an extension object does for slow work; it needs the extra ``queue``."""

    tasks: Tasks

    @overload
    def task(self, name: F, /) -> F: ...

    @overload
    def task(
        self,
        name: str | None = None,
        /,
        *,
        queue: str = DEFAULT_QUEUE,
        delivery: Literal["once", "at_most_once", "at_least_once"] = "once",
        attempts: int = DEFAULT_ATTEMPTS,
        backoff: Duration = DEFAULT_BACKOFF,
        timeout: Duration | None = None,
        key: str | Sequence[str] = (),
    ) -> Callable[[F], F]: ...

    def task(self, name: Any = None, /, **options: Any) -> Any:
        """Register the decorated function as a task, and return it unchanged.

        A worker calls it with the arguments that it was deferred with, all by name, and with the
        :class:`Item` where it has a parameter ``item``.

        :param name: by default the function's, with dashes.
        :param queue: workers can be told to look into some only; at most 40 characters, with the
            namespace, or else ``cronlock``, and a dot.
        :param delivery: what becomes of an item whose worker dies half-way. ``"once"``: its record
            commits with what it writes to the database, or neither does. ``"at_most_once"``: it is
            not called again, and listed as in doubt. ``"at_least_once"``: it is called again, with
            the same key.
        :param attempts: how often it is called at most; default 5.
        :param backoff: the wait after the first failure, which doubles with each, up to an hour.
        :param timeout: how long an item may take; default ``CRONLOCK_TIMEOUT``.
        :param key: the argument, or several, that tell one item from another; default: all. In one
            slot a task does an item once.
        :raises RegistrationError: naming the task and the cure.
        :raises QueueMissing: without the extra ``queue``.
        """

        def register(function: F, task_name: str | None = None) -> F:
            self.tasks.add(make_task(function, task_name, **options))
            return function

        return register(name) if callable(name) else functools.partial(register, task_name=name)

    def defer(self, session: AnySession, task: AnyTask, /, **arguments: Any) -> None:
        """Have a worker call *task*, if the transaction of *session* commits.

        Each call makes an item of its own, also with the same arguments.

        :param session: ``db.session`` in a view; what it writes and this are kept together, or not
            at all. Commit it as ever.
        :param task: a function under ``@cron.task``, or its name.
        :raises DeferError: when nothing was deferred; the message names the cure.
        """
        self._handoff(session).defer(task, arguments)

    def defer_many(
        self, session: AnySession, task: AnyTask, items: Iterable[Mapping[str, Any]], batch: int = 1
    ) -> int:
        """Do as :meth:`defer` for each of *items*, *batch* of them a row of the queue.

        Within one call, items with the same key are one.

        :returns: how many there were.
        """
        return self._handoff(session).defer_many(task, items, batch)

    def defer_from(
        self, session: AnySession, task: AnyTask, statement: Source, batch: int = 1
    ) -> int:
        """Do as :meth:`defer` for each row of *statement*, which the server makes and keeps.

        Within one call, items with the same key are one. What the session has loaded of what
        *statement* changes is as it was before.

        :param statement: its columns are named after the task's arguments.
        :returns: how many there were.
        """
        return self._handoff(session).defer_from(task, statement, batch)

    def once(self, key: str, session: AnySession | None = None) -> bool:
        """Tell whether *key* was never seen before, and have it seen when *session* commits.

        For consumers that a message may reach twice: of two with one key the second waits for the
        end of the first one's transaction, and is told ``False`` if that committed.

        :param session: default ``db.session``; what else it writes is kept with the key, or not at
            all.
        :raises OnceError: for a key that is no text of 1 to 500 characters, or another database's
            session.
        """
        state = self._state()
        return is_first(state, key, _plain(state.db.session if session is None else session))

    def _handoff(self, session: AnySession) -> Handoff:
        state = self._state()
        origin = Origin.elsewhere(state.config.namespace)
        return Handoff(state.tasks, _plain(session), origin, state.db.engine)

    def _state(self) -> AppState:
        raise NotImplementedError


def _plain(session: AnySession) -> Session:
    return session() if isinstance(session, scoped_session) else session
