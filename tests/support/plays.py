"""Tasks whose items do what a test says, in rows of one or many."""

from __future__ import annotations

from collections.abc import Callable

from flask_cronlock import Item

from .sites import BRISK
from .tasks import Row, records, rows
from .worlds import World

Body = Callable[[Item, int], object]
Errors = list[BaseException | None]


class Play:
    """The task ``write``, and what its items do after they have written their number.

    ``write-soon`` is the same with little time.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.body: Body = lambda item, n: None
        self.called: list[int] = []
        world.cron.task("write", attempts=3, timeout="30s")(self._write)
        world.cron.task("write-soon", attempts=3, timeout=BRISK)(self._write)

    def _write(self, item: Item, n: int) -> None:
        self.called.append(n)
        self.world.note(f"{n:03}")
        self.body(item, n)

    def anew(self) -> Play:
        """Return it with nothing in the database."""
        self.world.database.emptied()
        return self

    def deferred(self, body: Body, count: int = 1, task: str = "write") -> Row:
        """Have the queue hold one row of *count* items, for *body*."""
        self.body = body
        self.called.clear()
        return _deferred(self.world, task, count)


class Calls:
    """The task ``send``, whose effect is outside the database, and what its calls end with."""

    def __init__(self, world: World, delivery: str) -> None:
        self.world = world
        self.errors: Errors = []
        self.calls: list[tuple[str, int]] = []
        self.seen: list[object] = []
        """What was recorded of the items during each call."""
        world.cron.task("send", delivery=delivery, attempts=3, backoff="10s")(self._send)

    def _send(self, item: Item, n: int) -> None:
        self.seen += records(self.world)
        self.calls.append((item.token, item.attempt))
        self.world.mark()
        error = self.errors.pop(0)
        if error is not None:
            raise error

    def anew(self) -> Calls:
        """Return it with nothing in the database."""
        self.world.database.emptied()
        self.seen.clear()
        self.calls.clear()
        return self

    def deferred(self, errors: Errors, count: int = 1) -> Row:
        """Have the queue hold one row of *count* items, whose calls end with *errors*."""
        self.errors = errors
        return _deferred(self.world, "send", count)


def _deferred(world: World, task: str, count: int) -> Row:
    with world.app.app_context():
        items = [{"n": n} for n in range(count)]
        world.cron.defer_many(world.db.session, task, items, batch=count)
        world.db.session.commit()
    [row] = rows(world)
    return row


def nothing(item: Item, n: int) -> None: ...


def named(numbers: list[int] | range) -> list[str]:
    """Return what items of these numbers write."""
    return [f"{n:03}" for n in numbers]
