"""What arrived: a page of the inbox, one mail as it is read, and how many each user got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from .models import Mail, User

HEADERS = ("From", "To", "Subject", "Date", "Message-ID", "List-Unsubscribe")


@dataclass(frozen=True)
class Totals:
    """The mails told apart by Message-ID, whom they went to, and how many came more than once."""

    mails: int
    users: int
    repeated: int


@dataclass(frozen=True)
class Letter:
    """What a mail program shows of a mail."""

    headers: list[tuple[str, str]]
    text: str | None
    html: str | None


def newest(session: Session, before: int | None, size: int) -> Sequence[Mail]:
    """Return up to `size` mails, newest first, those that arrived before the mail `before`."""
    page = select(Mail).options(defer(Mail.content)).order_by(Mail.id.desc()).limit(size)
    if before is not None:
        page = page.where(Mail.id < before)
    return session.scalars(page).all()


def totals(session: Session) -> Totals:
    """Count all mails."""
    counts = select(
        func.count(),
        func.count(Mail.recipient.distinct()),
        func.count().filter(Mail.deliveries > 1),
    )
    return Totals(*session.execute(counts.select_from(Mail)).one())


def per_user(session: Session) -> dict[tuple[bool, int], int]:
    """Return how many users got how many mails: `{(enabled, mails): users}`.

    Those who got none show as 0. One mail that came twice is one: it has one Message-ID.
    """
    one = (
        select(User.digest_enabled, func.count(Mail.id).label("mails"))
        .outerjoin_from(User, Mail, Mail.recipient == User.email)
        .group_by(User.id)
        .subquery()
    )
    rows = session.execute(
        select(one.c.digest_enabled, one.c.mails, func.count()).group_by(
            one.c.digest_enabled, one.c.mails
        )
    )
    return {(enabled, mails): users for enabled, mails, users in rows}


def read(mail: Mail) -> Letter:
    """Return the parts of `mail`; whatever in it cannot be read is replaced."""
    message = message_from_bytes(mail.content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    headers = [(name, str(message[name])) for name in HEADERS if name in message]
    return Letter(headers, body(message, "plain"), body(message, "html"))


def body(message: EmailMessage, kind: str) -> str | None:
    """Return the body of `kind`, if there is one."""
    part = message.get_body((kind,))
    if part is None:
        return None
    try:
        return str(part.get_content(errors="replace"))
    except LookupError:
        # Of a character set that Python does not know.
        return bytes(part.get_payload(decode=True)).decode(errors="replace")
