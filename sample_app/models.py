"""Users, their posts, and the outbox that a mailer would drain."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from sqlalchemy import BigInteger, DateTime, ForeignKey, Identity, Index, func, true
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
