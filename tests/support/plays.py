"""A task whose items do what a test says, in rows of one or many."""

from __future__ import annotations

from collections.abc import Callable

from flask_cronlock import Item

from .sites import BRISK
from .tasks import Row, rows
from .worlds import World

Body = Callable[[Item, int], object]


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
        with self.world.app.app_context():
            items = [{"n": n} for n in range(count)]
            self.world.cron.defer_many(self.world.db.session, task, items, batch=count)
            self.world.db.session.commit()
        [row] = rows(self.world)
        return row


def nothing(item: Item, n: int) -> None: ...


def named(numbers: list[int] | range) -> list[str]:
    """Return what items of these numbers write."""
    return [f"{n:03}" for n in numbers]
