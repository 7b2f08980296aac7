"""One attempt to execute a job: what it is about, and what the job is handed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from sqlalchemy.orm import Session

from .limits import Deadline

if TYPE_CHECKING:
    from .queue.fanout import Source
    from .queue.handoff import Handoff
    from .queue.tasks import AnyTask


class RunLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry the job's name and the run's id."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


@dataclass(slots=True, kw_only=True)
class Run:
    """The run that a job may take as its one argument."""

    job: str
    names: tuple[str, ...]
    """All that the job was ever called, oldest first; the lock is taken under each."""
    namespace: str
    trigger: str
    """Who asked: ``http``, ``cli``, ``clock``, ``queue`` or ``manual``."""
    forced: bool
    instance: str
    app: str
    started_at: datetime
    slot: datetime | None = None
    """The scheduled time, aware; ``None`` for a job without a schedule."""
    previous_slot: datetime | None = None
    """The slot of the run before this one: what came since then is for this run. Where all slots
    are caught up it is the slot before, which has a run of its own."""
    next_slot: datetime | None = None
    slot_key: str | None = None
    """The claim's key; ``None`` where no slot is used up."""
    id: UUID = field(default_factory=uuid4)
    _session: Session | None = field(default=None, repr=False)
    _deadline: Deadline | None = field(default=None, repr=False)
    _handoff: Handoff | None = field(default=None, repr=False)

    def begin(self, session: Session, deadline: Deadline, handoff: Handoff | None = None) -> None:
        """Take up the session, the deadline and the queue that the job is to work with."""
        self._session, self._deadline, self._handoff = session, deadline, handoff

    @property
    def identity(self) -> str:
        """The name that the slot is claimed under."""
        return self.names[0]

    @property
    def about(self) -> dict[str, Any]:
        """What every outcome of this run carries."""
        return {
            "job": self.job,
            "slot": self.slot,
            "next_slot": self.next_slot,
            "instance": self.instance,
        }

    @property
    def session(self) -> Session:
        """The run's ``db.session``; its writes commit with the claim or not at all."""
        if self._session is None:
            raise RuntimeError("run.session is there only while the job runs.")
        return self._session

    def defer(self, task: AnyTask, /, **arguments: Any) -> None:
        """Have a worker call *task*, if this run commits.

        :param task: a function under ``@cron.task``, or its name.
        :raises DeferError: when nothing was deferred; the message names the cure.
        """
        self._queue.defer(task, arguments)

    def defer_many(self, task: AnyTask, items: Iterable[Mapping[str, Any]], batch: int = 1) -> int:
        """Have workers call *task* with each of *items*, if this run commits; return how many.

        :param items: the arguments of each call; memory does not grow with their number.
        :param batch: how many of them make one row of the queue, and so are worked off in turn.
        :raises DeferError: when one cannot be deferred; let it end the job.
        """
        return self._queue.defer_many(task, items, batch)

    def defer_from(self, task: AnyTask, statement: Source, batch: int = 1) -> int:
        """Have workers call *task* for each row of *statement*; return how many there are.

        It is one statement, made and kept by the server: an ``update(User)…returning(…)`` marks
        users and defers a call for each.

        :param statement: its columns are named after the task's arguments.
        :param batch: how many calls make one row of the queue.
        :raises DeferError: when nothing was deferred.
        """
        return self._queue.defer_from(task, statement, batch)

    @property
    def _queue(self) -> Handoff:
        if self._handoff is None:
            raise RuntimeError("run.defer() is there only while the job runs.")
        return self._handoff

    @property
    def remaining(self) -> timedelta:
        """What is left of the job's timeout; give it to calls that leave the database."""
        return self._deadline.remaining if self._deadline else timedelta()

    @property
    def deadline(self) -> datetime:
        """When the time is up, by the database's clock at the run's start."""
        timeout = self._deadline.timeout if self._deadline else timedelta()
        return self.started_at + timeout

    @property
    def log(self) -> RunLog:
        """A logger whose records carry the job's name and the run's id."""
        about = {"job": self.job, "run": str(self.id)}
        return RunLog(logging.getLogger("flask_cronlock.job"), about)
