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
    scope: str
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

        It is made where the item is worked off, so that it does not depend on how it was deferred;
        and of what was deferred alone, so that no release with another default changes it.
        """
        named = {n: arguments[n] for n in task.key if n in arguments} if task.key else arguments
        text = _text_of(_kept(named), plain=len(task.key) == 1)
        if len(text) > LONGEST_PART:
            text = "#" + hashlib.sha256(text.encode()).hexdigest()
        return "/".join((self.namespace, self.scope, task.name, text))


def _text_of(named: Mapping[str, Any], plain: bool) -> str:
    """Return text that no other arguments have.

    :param plain: whether it may be the value itself, where there is one; not where others may be
        given instead of it.
    """
    only = next(iter(named.values())) if plain and named else None
    if type(only) is int:
        return str(only)
    if isinstance(only, str) and only and not NOT_PLAIN.fullmatch(only):
        return only
    return json.dumps(named, sort_keys=True)


def _kept(value: Any) -> Any:
    """Return *value* as it is once more in PostgreSQL, which keeps no float of a whole number."""
    if isinstance(value, Mapping):
        return {name: _kept(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_kept(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
