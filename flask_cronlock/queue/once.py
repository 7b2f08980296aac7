"""Once for a key, in anybody's transaction: for consumers of a queue that delivers twice."""

from __future__ import annotations

import re

from sqlalchemy import func
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from ..exceptions import OnceError
from ..instance import with_pid
from ..state import AppState
from ..texts import shown
from .records import State
from .rows import missing_told
from .surety import sure_connection

LONGEST_KEY = 500
UNKEPT = re.compile("[\0\ud800-\udfff]")
"""What PostgreSQL keeps in no text."""


def is_first(state: AppState, key: object, session: Session) -> bool:
    """Tell whether *key* has no record yet, and write it in the transaction of *session*."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or UNKEPT.search(key):
        raise OnceError(f"{shown(key)} is no key: give text of 1 to {LONGEST_KEY} characters")
    table, config = state.records.table, state.config
    record = {
        "key": f"{config.namespace}/-/once/{key}",
        "namespace": config.namespace,
        "task": "",
        "state": State.DONE.value,
        "attempts": 1,
        "in_doubt": False,
        "instance": with_pid(config.instance),
        "started_at": func.clock_timestamp(),
        "finished_at": func.clock_timestamp(),
    }
    insert = postgresql.insert(table).values(record).on_conflict_do_nothing(index_elements=["key"])
    connection = sure_connection(session, state.db.engine, OnceError)
    with missing_told(table.name):
        return connection.execute(insert.returning(table.c.key)).one_or_none() is not None
