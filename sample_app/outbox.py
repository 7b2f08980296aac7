"""What the outbox holds: a page of it, and how many digests each user got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, true
from sqlalchemy.orm import Session

from .models import Outbox, User


@dataclass(frozen=True)
class SlotCount:
    """The digests of one slot; `most` is the highest number any single user got."""

    slot: datetime
    digests: int
    users: int
    most: int


def newest(session: Session, before: int | None, size: int) -> Sequence[Outbox]:
    """Return up to `size` digests, newest first, those older than the digest `before`."""
    page = select(Outbox).order_by(Outbox.id.desc()).limit(size)
    if before is not None:
        page = page.where(Outbox.id < before)
    return session.scalars(page).all()


def per_slot(session: Session, slots: int) -> list[SlotCount]:
    """Count the digests of the newest `slots` slots."""
    one = (
        select(Outbox.slot, Outbox.user_id, func.count().label("digests"))
        .group_by(Outbox.slot, Outbox.user_id)
        .subquery()
    )
    rows = session.execute(
        select(one.c.slot, func.sum(one.c.digests), func.count(), func.max(one.c.digests))
        .group_by(one.c.slot)
        .order_by(one.c.slot.desc())
        .limit(slots)
    )
    return [SlotCount(slot, int(digests), users, most) for slot, digests, users, most in rows]


def per_user(session: Session) -> dict[tuple[bool, int], int]:
    """Return how many users got how many digests in one slot: `{(enabled, digests): users}`.

    Every user is counted once for each slot in the outbox, so a user who got none shows as 0.
    """
    slots = select(Outbox.slot).distinct().subquery()
    one = (
        select(User.digest_enabled, func.count(Outbox.id).label("digests"))
        .join_from(User, slots, true())
        .outerjoin(Outbox, (Outbox.user_id == User.id) & (Outbox.slot == slots.c.slot))
        .group_by(User.id, slots.c.slot)
        .subquery()
    )
    rows = session.execute(
        select(one.c.digest_enabled, one.c.digests, func.count()).group_by(
            one.c.digest_enabled, one.c.digests
        )
    )
    return {(enabled, digests): users for enabled, digests, users in rows}
