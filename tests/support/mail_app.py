"""A digest for each reader, handed to workers: one mail outside the database, one note in it.

The provider is a table that is written on a connection of its own, so that a mail that went out
stays out, whatever becomes of the worker. MAIL_SECONDS is what it takes to send one.
"""

from __future__ import annotations

import os
import time

from sqlalchemy import Column, DateTime, Integer, Table, select, update

from flask_cronlock import Item, Run

from .named import HEADER
from .queue_app import create_app, cron, db, probe

TABLES = """
CREATE TABLE mail (message_id text, reader int, slot text, pid int);
CREATE TABLE read (reader int, slot text);
INSERT INTO reader SELECT generate_series(1, {readers})
"""
SENT = "INSERT INTO mail VALUES (%s, %s, %s, %s)"
READ = db.text("INSERT INTO read VALUES (:reader, :slot)")
PAUSE = float(os.environ.get("MAIL_SECONDS", "0"))
BATCH = 10

reader = Table(
    "reader",
    db.metadata,
    Column("id", Integer, primary_key=True),
    Column("last_slot", DateTime(timezone=True)),
)


@cron.task("send-mail", queue="mail", delivery="at_least_once", attempts=20, key="reader")
def send_mail(item: Item, reader: int) -> None:
    assert item.slot
    time.sleep(PAUSE / 2)
    about = [item.message_id("example.org"), reader, item.slot.isoformat(), os.getpid()]
    probe(0).execute(SENT, about)
    time.sleep(PAUSE / 2)


@cron.task("note-read", key="reader")
def note_read(item: Item, reader: int) -> None:
    assert item.slot
    db.session.execute(READ, {"reader": reader, "slot": item.slot.isoformat()})
    time.sleep(PAUSE / 2)


@cron.job("digest", every="1m", max_lateness="1d")
def digest(run: Run) -> int:
    due = reader.c.last_slot.is_(None) | (reader.c.last_slot < run.slot)
    stamped = update(reader).where(due).values(last_slot=run.slot)
    run.defer_from(note_read, select(reader.c.id.label("reader")), batch=BATCH)
    count = run.defer_from(send_mail, stamped.returning(reader.c.id.label("reader")), batch=BATCH)
    time.sleep(0.5)
    return count


app = create_app(CRONLOCK_SLOT_HEADER=HEADER) if "DATABASE_URL" in os.environ else None
