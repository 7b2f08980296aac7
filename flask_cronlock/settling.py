"""What became of a COMMIT whose answer was lost: asked in another transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlalchemy import CursorResult, Executable

from .limits import SETTLE_WAIT
from .statements import XACT_STATUS

Witness = Callable[[Any], bool]
"""Takes the other transaction; tells whether what was to be kept is there."""


class Asked(Protocol):
    """The other transaction, which may be on another server by then."""

    server: str

    def execute(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> CursorResult[Any]: ...


def status_of(xid: str, server: str, other: Asked, witness: Witness | None) -> str | None:
    """Return ``committed``, ``aborted``, or anything else where that is not to be found out.

    The id alone does not tell: one that a crash or a failover has lost is soon somebody else's.
    So what was kept is looked for, or where nothing can be, the *server* must be the same, and not
    have crashed since.
    """
    until = time.monotonic() + SETTLE_WAIT.total_seconds()
    found: str | None
    while (found := other.execute(XACT_STATUS, {"xid": xid}).scalar()) == "in progress":
        if time.monotonic() > until:
            return None
        time.sleep(0.05)
    if found != "committed":
        return found
    if witness is None:
        return found if other.server == server else None
    return found if witness(other) else "aborted"
