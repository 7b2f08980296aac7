"""Session classes of apps that lead some statements to a replica, or to another engine."""

from __future__ import annotations

from typing import Any

from flask_sqlalchemy.session import Session
from sqlalchemy import Delete, Insert, Select, Update


class ByWrites(Session):
    """Leads all but writes to the replica."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if self._flushing or isinstance(clause, Insert | Update | Delete):
            return self._db.engines[None]
        return self._db.engines["replica"]


class ByReads(Session):
    """Leads what is a SELECT to the replica."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if clause is not None and clause.is_select:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class ByModels(Session):
    """Leads reads of models to the replica, and all else not."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if mapper is not None and not self._flushing:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class Minding(ByWrites):
    """Knows of runs, as the error tells it to."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if "cronlock" in self.info:
            return Session.get_bind(self, mapper=mapper, clause=clause, **kwargs)
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class ByTable(Session):
    """Leads one model, reads and writes, to another engine."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if mapper is not None:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class ByClause(Session):
    """Leads one table, by what the statement says, to another engine; takes no other argument."""

    def get_bind(self, mapper: Any = None, clause: Any = None) -> Any:
        written = getattr(clause, "table", None)
        tables = clause.get_final_froms() if isinstance(clause, Select) else [written]
        if any(getattr(each, "name", None) == "note" for each in tables):
            return self._db.engines["replica"]
        return self._db.engines[None]
