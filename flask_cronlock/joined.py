"""The class of a run's session: the app's own, with the default engine led to the run's connection.

What it leads to another engine is outside the run's transaction: refused, or warned of.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Executable, TextClause
from sqlalchemy.orm import Session

from .exceptions import ForeignEngine, SplitSession

logger = logging.getLogger("flask_cronlock")

READS = re.compile(r"\s*(select|show|table|values)\b", re.IGNORECASE)


@cache
def joined_class(base: type[Session]) -> type[Session]:
    """Return the session class for runs of an app whose own is *base*."""

    class JoinedSession(base):  # type: ignore[valid-type,misc]
        cronlock_connection: Connection
        cronlock_warned = False

        def get_bind(self, *args: Any, **kwargs: Any) -> Engine | Connection:
            bind: Engine | Connection = super().get_bind(*args, **kwargs)
            ours = self.cronlock_connection.engine
            if bind.engine is ours:
                return self.cronlock_connection
            if bind.engine.pool is ours.pool:
                raise ForeignEngine
            clause = kwargs.get("clause")
            if kwargs.get("bind") is None and not self._flushing and not _may_write(clause):
                mapper = args[0] if args else kwargs.get("mapper")
                if self._bind_of_writes(mapper).engine is ours:
                    raise SplitSession
            self._warn_of_writes_outside(bind, clause)
            return bind

        def connection(
            self, bind_arguments: Any = None, execution_options: Any = None
        ) -> Connection:
            # SQLAlchemy does not ask get_bind() about an engine that is named here.
            about = {**(bind_arguments or {})}
            about["bind"] = self.get_bind(**about)
            found: Connection = super().connection(about, execution_options)
            return found

        def _bind_of_writes(self, mapper: Any) -> Engine | Connection:
            """Ask as a flush does."""
            self._flushing = True
            try:
                bind: Engine | Connection = super().get_bind(mapper=mapper)
            finally:
                self._flushing = False
            return bind

        def _warn_of_writes_outside(self, bind: Engine | Connection, clause: Any) -> None:
            writes = self._flushing or _may_write(clause)
            if self.cronlock_warned or not writes:
                return
            self.cronlock_warned = True
            logger.warning(
                "The job writes, or may write, to another database (%s): that commits on its own, "
                "outside the run's transaction, so it can be kept although the run fails.",
                bind.engine.url.database,
                extra={"action": "other_bind_written"},
            )

    return JoinedSession


def _may_write(clause: Any) -> bool:
    """Tell what a statement that is about to be executed may do; ``None`` asks for a connection."""
    if isinstance(clause, TextClause):
        return READS.match(clause.text) is None
    return not isinstance(clause, Executable) or clause.is_dml
