"""The tables, in the user's own metadata, so that the app's migrations see them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

Stamp = DateTime(timezone=True)


def _about_columns() -> tuple[Column[Any], ...]:
    return (
        Column("id", Uuid, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("job", Text, nullable=False),
        Column("slot_key", Text),
        Column("scheduled_at", Stamp),
        Column("trigger", Text, nullable=False),
        Column("forced", Boolean, nullable=False),
        Column("instance", Text, nullable=False),
        Column("app", Text, nullable=False),
        Column("started_at", Stamp, nullable=False),
        Column("finished_at", Stamp),
    )


def make_tables(metadata: MetaData) -> tuple[Table, Table, Table]:
    """Return the tables of runs, of failed attempts, and of jobs.

    ``paused_by`` is for what the tables will have to tell of a job later; it is here from the first
    release on, so that no app has to migrate for it.
    """
    run = _table(
        metadata,
        "cronlock_run",
        *_about_columns(),
        Column("state", Text, nullable=False),
        Column("value", Text),
        Column("error", Text),
        UniqueConstraint("namespace", "job", "slot_key", name="cronlock_run_slot"),
        Index("cronlock_run_scheduled", "namespace", "job", "scheduled_at"),
    )
    attempt = _table(
        metadata,
        "cronlock_attempt",
        *_about_columns(),
        Column("error", Text, nullable=False),
        Index("cronlock_attempt_job", "namespace", "job", "started_at"),
        Index("cronlock_attempt_slot", "namespace", "job", "slot_key"),
    )
    job = _table(
        metadata,
        "cronlock_job",
        Column("namespace", Text, primary_key=True),
        Column("job", Text, primary_key=True),
        Column("schedule", Text),
        Column("known_since", Stamp),
        Column("pruned_through", Stamp),
        Column("paused_at", Stamp),
        Column("paused_by", Text),
    )
    return run, attempt, job


def make_item_table(metadata: MetaData) -> Table:
    """Return the table of items: each task's call with a key of its own, and what became of it."""
    return _table(
        metadata,
        "cronlock_item",
        Column("key", Text, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("task", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("in_doubt", Boolean, nullable=False),
        Column("args", Text),
        Column("error", Text),
        Column("instance", Text, nullable=False),
        Column("queue_row", BigInteger),
        Column("started_at", Stamp, nullable=False),
        Column("finished_at", Stamp),
        # Of millions only the few that an operator asks for.
        Index("cronlock_item_open", "namespace", "state", postgresql_where=text("state <> 'done'")),
        # For the removal of old ones. A BRIN index would see none once their space is used again.
        Index("cronlock_item_finished", "finished_at", postgresql_where=text("state = 'done'")),
    )


def make_request_table(metadata: MetaData) -> Table:
    """Return the table of runs that workers were asked for: one row a slot."""
    return _table(
        metadata,
        "cronlock_request",
        Column("id", Uuid, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("job", Text, nullable=False),
        Column("slot_key", Text, nullable=False),
        Column("scheduled_at", Stamp),
        Column("trigger", Text, nullable=False),
        Column("instance", Text, nullable=False),
        Column("app", Text, nullable=False),
        Column("requested_at", Stamp, nullable=False),
        Column("queue_row", BigInteger),
        Column("state", Text, nullable=False),
        Column("runs", Integer, nullable=False),
        Column("body", Text),
        Column("ended_at", Stamp),
        UniqueConstraint("namespace", "job", "slot_key", name="cronlock_request_slot"),
    )


def _table(metadata: MetaData, name: str, *parts: Any) -> Table:
    """Return the table; one that another extension object put there is the same table."""
    key = f"{metadata.schema}.{name}" if metadata.schema else name
    known = metadata.tables.get(key)
    return known if known is not None else Table(name, metadata, *parts)
