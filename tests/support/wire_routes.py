"""The app's ways to its database, each with a wire in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .databases import Database
from .pgbouncer import pgbouncer_before
from .wire import Wire, wire_before, wire_to

DIRECT, BEFORE_POOLER, BEHIND_POOLER = "direct", "before PgBouncer", "behind PgBouncer"
QUICK = {"default_pool_size": 1, "server_login_retry": 0.05}
"""One backend, and no long wait after one could not be opened."""


@dataclass(frozen=True)
class _Behind:
    """A server as a pooler sees it through a wire."""

    server: Any
    wire: Wire

    @property
    def host(self) -> str:
        return self.wire.address[0]

    @property
    def port(self) -> int:
        return self.wire.address[1]

    @property
    def user(self) -> str:
        return str(self.server.user)

    @property
    def run_as(self) -> Any:
        return self.server.run_as


@contextmanager
def wired(way: str, database: Database) -> Iterator[tuple[Wire, str]]:
    """Yield a wire and the URL of *database* by that *way*; a pooler in it is the block's own."""
    if way == DIRECT:
        with wire_before(database) as wire:
            yield wire, wire.url(database)
    elif way == BEFORE_POOLER:
        with (
            pgbouncer_before(database.server, **QUICK) as pooler,
            wire_to(("127.0.0.1", pooler.port)) as wire,
        ):
            yield wire, wire.url(database)
    else:
        with (
            wire_before(database) as wire,
            pgbouncer_before(_Behind(database.server, wire), **QUICK) as pooler,
        ):
            yield wire, pooler.url(database)
