"""Take and hold a lock, and a mapped class to use under it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

from .worlds import World


def locked(world: World, name: Any, work: Callable[[Session], Any], **how: Any) -> Any:
    with world.app.app_context():
        return world.cron.with_lock(name, work, **how)


@contextmanager
def held(world: World, name: Any) -> Iterator[threading.Event]:
    """Hold a lock in another thread until the event is set."""
    begun, end = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        assert end.wait(30)

    thread = threading.Thread(target=locked, args=(world, name, hold))
    thread.start()
    try:
        assert begun.wait(30)
        yield end
    finally:
        end.set()
        thread.join()


def thing_class(world: World) -> Any:
    """Return a mapped class whose objects cannot be hashed, as dataclasses cannot."""
    found = world.__dict__.get("thing")
    if found is None:

        class Thing(world.db.Model):  # type: ignore[name-defined, misc]
            id = world.db.Column(world.db.Integer, primary_key=True)
            name = world.db.Column(world.db.Text)
            owner_id = world.db.Column(world.db.ForeignKey("thing.id"))
            owner = world.db.relationship("Thing", remote_side=[id])
            __hash__ = None  # type: ignore[assignment]

            def __eq__(self, other: object) -> bool:
                return self is other

        found = world.__dict__["thing"] = Thing
    return found
