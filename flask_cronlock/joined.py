"""The class of a run's session: the app's own, with the default engine led to the run's connection.

What it leads to another engine is outside the run's transaction: refused, or warned of.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Insert,
    Select,
    TableClause,
    TextClause,
    TextualSelect,
)
from sqlalchemy.orm import FromStatement, Session
from sqlalchemy.sql import visitors

from .exceptions import ForeignEngine, SplitSession

logger = logging.getLogger("flask_cronlock")

READS = re.compile(
    r"(?>\s|\(|--[^\r\n]*+|/\*.*?\*/)*+(?:select|show|table|values|with)\b",
    re.IGNORECASE | re.DOTALL,
)
WRITES = re.compile(
    r"\b(?:insert|update|delete|merge|into|nextval|setval)\b|;\s*\S|/\*|\*/", re.IGNORECASE
)
"""What a text that begins as a read may go on with, and then write; it may be in a string too."""


def joined_class(base: type[Session]) -> type[Session]:
    """Return the session class for runs of an app whose own is *base*, which remembers it."""
    if "_cronlock_joined" not in vars(base):
        base._cronlock_joined = _joined_class(base)  # type: ignore[attr-defined]
    found: type[Session] = vars(base)["_cronlock_joined"]
    return found


def _joined_class(base: type[Session]) -> type[Session]:
    class JoinedSession(base):  # type: ignore[valid-type,misc]
        cronlock_connection: Connection
        cronlock_warned = False

        def get_bind(self, *args: Any, **kwargs: Any) -> Engine | Connection:
            # What a statement names is not the app's to choose, and may be no argument of its own.
            named = kwargs.get("bind")
            bind: Engine | Connection = (
                super().get_bind(*args, **kwargs) if named is None else named
            )
            ours = self.cronlock_connection
            if bind is ours.engine or bind is ours:
                return ours
            if bind.engine.pool is ours.engine.pool:
                raise ForeignEngine
            about = dict(zip(("mapper", "clause"), args, strict=False)) | kwargs
            mapper, clause = about.get("mapper"), about.get("clause")
            reads = not self._flushing and _may_read(clause)
            if named is None and reads and self._writes_to_run(mapper, clause):
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

        def _writes_to_run(self, mapper: Any, clause: Any) -> bool:
            """Ask, as a flush does, whether what is read here is written in the run."""
            self._flushing = True
            try:
                bind = super().get_bind(mapper=mapper, clause=_insert_into_same(mapper, clause))
            except Exception:
                return False
            finally:
                self._flushing = False
            return bind.engine is self.cronlock_connection.engine

        def _warn_of_writes_outside(self, bind: Engine | Connection, clause: Any) -> None:
            writes = self._flushing or _may_write(clause)
            if self.cronlock_warned or not writes:
                return
            self.cronlock_warned = True
            logger.warning(
                "A run writes, or may write, to another database (%s): that commits on its own, "
                "outside the run's transaction, so it can be kept although the run fails.",
                bind.engine.url.database,
                extra={"action": "other_bind_written"},
            )

    return JoinedSession


def _insert_into_same(mapper: Any, clause: Any) -> Insert | None:
    """Return a write to the table that *clause* reads; a mapper alone tells where to write."""
    tables = clause.get_final_froms() if mapper is None and isinstance(clause, Select) else []
    return tables[0].insert() if tables and isinstance(tables[0], TableClause) else None


def _may_read(clause: Any) -> bool:
    """Tell whether a statement is no plain write; ``None`` asks for a connection."""
    if isinstance(clause, TextClause):
        return READS.match(clause.text) is not None
    return isinstance(clause, Executable) and not clause.is_dml


def _may_write(clause: Any) -> bool:
    """Tell whether a statement is not surely a read: ``None``, which asks for a connection, is not.

    What its functions do is not known here.
    """
    if isinstance(clause, FromStatement):
        clause = clause.element
    if isinstance(clause, TextClause):
        begun = READS.match(clause.text)
        return begun is None or WRITES.search(clause.text, begun.end()) is not None
    if not getattr(clause, "is_select", False):
        return True
    return any(_writes_within(part) for part in visitors.iterate(clause))


def _writes_within(part: Any) -> bool:
    """Tell whether a *part* of a read is a statement that may write, as in a WITH."""
    if isinstance(part, TextualSelect):
        return _may_write(part.element)
    return getattr(part, "is_dml", False)
