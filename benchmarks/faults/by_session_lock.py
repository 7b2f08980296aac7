"""A session-level advisory lock, taken and given back by PALs, around work on the app's session."""

from __future__ import annotations

import pals

from .body import Body, run_under
from .hit import Hit, Place


class BySessionLock:
    def __init__(self, place: Place, body: Body) -> None:
        # AUTOCOMMIT, since PALs' statement at check-in would leave a transaction open.
        self.locker = pals.Locker(
            "faults",
            create_engine_callable=lambda: place.engine(isolation_level="AUTOCOMMIT"),
            blocking_default=False,
        )
        self.engine, self.body = place.engine(), body

    def fire(self, hit: Hit) -> str:
        lock = self.locker.lock(hit.job)
        return run_under(lock, self.engine, self.body, hit)
