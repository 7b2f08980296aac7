"""Users, their posts, the outbox of digests, and the inbox that their mails arrive in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from sqlalchemy import (
    BigInteger,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    UniqueConstraint,
    func,
    text,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from .extensions import db

PrimaryKey = Annotated[int, mapped_column(BigInteger, Identity(), primary_key=True)]
UserId = Annotated[int, mapped_column(ForeignKey("users.id"))]
Instant = Annotated[datetime, mapped_column(DateTime(timezone=True))]
Created = Annotated[
    datetime, mapped_column(DateTime(timezone=True), server_default=func.now(), index=True)
]


class User(db.Model):
    """A reader; `last_digest_at` is the slot of the newest digest, NULL if there was none."""

    __tablename__ = "users"

    id: Mapped[PrimaryKey]
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    digest_enabled: Mapped[bool] = mapped_column(server_default=true())
    last_digest_at: Mapped[Instant | None]


class Post(db.Model):
    """Something a user wrote; the digest counts the new ones."""

    __tablename__ = "posts"

    id: Mapped[PrimaryKey]
    user_id: Mapped[UserId]
    title: Mapped[str]
    created_at: Mapped[Created]
    user: Mapped[User] = relationship(lazy="joined")


class Outbox(db.Model):
    """A digest to be mailed.

    `(slot, user_id)` is deliberately not unique: a constraint would hide a digest written twice,
    and this table is the evidence that none was. The slot's claim is what makes it once.
    """

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_slot_user_id", "slot", "user_id"),)

    id: Mapped[PrimaryKey]
    user_id: Mapped[UserId]
    slot: Mapped[Instant]
    subject: Mapped[str]
    post_count: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.clock_timestamp()
    )
    user: Mapped[User] = relationship(lazy="joined")


class Mail(db.Model):
    """A mail that arrived, told from others by its Message-ID; the row counts how often it came."""

    __tablename__ = "inbox"
    __table_args__ = (UniqueConstraint("recipient", "message_id"),)

    id: Mapped[PrimaryKey]
    message_id: Mapped[str]
    recipient: Mapped[str]
    subject: Mapped[str]
    content: Mapped[bytes]
    received_at: Mapped[Created]
    deliveries: Mapped[int] = mapped_column(server_default=text("1"))
