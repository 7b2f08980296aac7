"""One item of a task: what a worker calls the task's function with."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from ..jobs import done
from ..limits import Deadline
from ..run import RunLog
from .origin import Origin
from .task import Task


@dataclass(slots=True, kw_only=True)
class Item:
    """The item that a task's function is handed where it has a parameter of that name."""

    task: Task = field(repr=False)
    origin: Origin = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)
    key: str
    """The same whenever this item is tried: namespace, job, slot, task and arguments."""
    attempt: int = 1
    """Counted before the call."""
    _session: Session | None = field(default=None, repr=False)
    _deadline: Deadline | None = field(default=None, repr=False)

    @classmethod
    def of(cls, task: Task, origin: Origin, arguments: Mapping[str, Any]) -> Item:
        return cls(task=task, origin=origin, arguments=arguments, key=origin.key(task, arguments))

    def as_row(self) -> dict[str, Any]:
        """Return this item as the one of a row of the queue."""
        return {"items": [dict(self.arguments)], "origin": self.origin.as_json()}

    @property
    def token(self) -> str:
        """The key as 64 hexadecimal digits, for a provider's ``Idempotency-Key``."""
        return hashlib.sha256(self.key.encode()).hexdigest()

    def message_id(self, domain: str) -> str:
        """Return a mail's ``Message-ID``: the same whenever this item is sent."""
        return f"<{self.token}@{domain}>"

    @property
    def job(self) -> str | None:
        """The job whose run deferred this; ``None`` where no run did."""
        return self.origin.job

    @property
    def slot(self) -> datetime | None:
        """The scheduled time of that run, aware."""
        return self.origin.slot_at

    @property
    def session(self) -> Session:
        """``db.session``, as it is while the task is called."""
        if self._session is None:
            raise RuntimeError("item.session is there only while the task is called.")
        return self._session

    @property
    def remaining(self) -> timedelta:
        """What is left of the task's timeout; give it to calls that leave the database."""
        return self._deadline.remaining if self._deadline else timedelta()

    @property
    def log(self) -> RunLog:
        """A logger whose records carry the task's name and the item's key."""
        about = {"task": self.task.name, "item": self.key}
        return RunLog(logging.getLogger("flask_cronlock.task"), about)

    def call(self, session: Session, deadline: Deadline, attempt: int = 1) -> Any:
        """Call the task's function with this item's arguments."""
        self._session, self._deadline, self.attempt = session, deadline, attempt
        function, extra = self.task.function, {"item": self} if self.task.takes_item else {}
        return done(function, function(**extra, **self.arguments))
