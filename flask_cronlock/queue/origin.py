"""What deferred an item: a run for its slot, or somebody's own transaction."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from ..run import Run
from .task import Task

LONGEST_PART = 80
"""Characters of the item's part of a key; a longer one is replaced by its hash."""
NOT_PLAIN = re.compile(r"-?\d+|[{#].*", re.DOTALL)
"""Text that would be taken for a number, for JSON or for a hash."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an item comes from; kept with it in the queue."""

    namespace: str
    once: str
    """What is the same whenever the same thing is deferred: job and slot, or else an id."""
    job: str | None = None
    slot: str | None = None
    """In RFC 3339."""

    @classmethod
    def of_run(cls, run: Run) -> Origin:
        """Return the origin of what *run* defers: the slot's; without one the run's own."""
        slot = run.slot.isoformat() if run.slot else None
        return cls(run.namespace, f"{run.identity}/{run.slot_key or run.id}", run.job, slot)

    @classmethod
    def elsewhere(cls, namespace: str) -> Origin:
        """Return an origin that no other has."""
        return cls(namespace, f"-/{uuid4()}")

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> Origin:
        """Return what :meth:`as_json` was made from."""
        return cls(**{name: about.get(name) for name in cls.__slots__})  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def slot_at(self) -> datetime | None:
        return datetime.fromisoformat(self.slot) if self.slot else None

    def key(self, task: Task, arguments: Mapping[str, Any]) -> str:
        """Return the key of one item: the same for the same slot, task and arguments.

        It is made where the item is worked off, so that it does not depend on how it was deferred.
        """
        named = {name: arguments.get(name) for name in task.key} if task.key else arguments
        text = _text_of(named)
        if len(text) > LONGEST_PART:
            text = "#" + hashlib.sha256(text.encode()).hexdigest()
        return "/".join((self.namespace, self.once, task.name, text))


def _text_of(named: Mapping[str, Any]) -> str:
    """Return text that no other arguments have: of a single one itself, where that is plain."""
    only = next(iter(named.values())) if len(named) == 1 else None
    if type(only) is int:
        return str(only)
    if isinstance(only, str) and only and not NOT_PLAIN.fullmatch(only):
        return only
    return json.dumps(named, sort_keys=True)
