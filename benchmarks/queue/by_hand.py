"""The same without Flask-CronLock: one SQL statement, and Procrastinate's own ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import procrastinate
from sqlalchemy import Connection, TextClause, text

CHUNK = 1_000
QUEUE, TASK = "cronlock.default", "mail"
ORIGIN = '{"scope": "by-hand/2020-01-01", "namespace": "", "job": "by-hand", "slot": null}'

MANY_A_ROW = """
WITH stamped AS (
  UPDATE users SET last_digest_at = :slot
  WHERE id <= :users AND (last_digest_at IS NULL OR last_digest_at < :slot)
  RETURNING id AS user_id
), numbered AS (
  SELECT user_id, row_number() OVER () - 1 AS number FROM stamped
), batches AS (
  SELECT jsonb_agg(jsonb_build_object('user_id', user_id)) AS items
  FROM numbered GROUP BY number / :batch
)
SELECT cardinality(procrastinate_defer_jobs_v1(array_agg(
  ROW(:queue, 'mail', 0, NULL, NULL,
      jsonb_build_object('items', items, 'origin', CAST(:origin AS jsonb)), NULL)
  ::procrastinate_job_to_defer_v1)))
FROM batches
"""
ONE_A_ROW = """
WITH stamped AS (
  UPDATE users SET last_digest_at = :slot
  WHERE id <= :users AND (last_digest_at IS NULL OR last_digest_at < :slot)
  RETURNING id AS user_id
)
SELECT cardinality(procrastinate_defer_jobs_v1(array_agg(
  ROW(:queue, 'mail', 0, NULL, NULL,
      jsonb_build_object('items', jsonb_build_array(jsonb_build_object('user_id', user_id)),
                         'origin', CAST(:origin AS jsonb)), NULL)
  ::procrastinate_job_to_defer_v1)))
FROM stamped
"""


def statement(batch: int) -> TextClause:
    """Return what one would write for users to be stamped and mailed, *batch* of them a row."""
    return text((ONE_A_ROW if batch == 1 else MANY_A_ROW).replace(":batch", str(batch)))


def defer_all(connection: Connection, users: int, batch: int, slot: datetime) -> None:
    """Stamp the first *users*, and defer their mails."""
    values = {"users": users, "slot": slot, "queue": QUEUE, "origin": ORIGIN}
    connection.execute(statement(batch), values)


def defer_in_chunks(connection: Connection, items: Iterable[Mapping[str, Any]]) -> None:
    """Defer by Procrastinate's own function for many."""
    items = iter(items)
    while chunk := list(islice(items, CHUNK)):
        _deferrer(connection).batch_defer(*chunk)


def defer_each(connection: Connection, items: Iterable[Mapping[str, Any]]) -> None:
    """Defer by Procrastinate's own function for one."""
    for item in items:
        _deferrer(connection).defer(**item)


def _deferrer(connection: Connection) -> Any:
    driver = connection.connection.driver_connection
    return _queue.configure_task(TASK, queue=QUEUE, connection=driver)


# Never opened: on a connection of its own nothing would be undone with the transaction.
_queue = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())
