"""The task: one digest as a mail, text and HTML, handed to the mail server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage

from flask import render_template
from sqlalchemy import select

from flask_cronlock import Item, NotDone

from .extensions import cron, db
from .models import Outbox, Post
from .smtp import MailServer

DOMAIN = "digest.example"
NEWEST = 5


@cron.task("send-digest", queue="mail", delivery="at_least_once", timeout="60s")
def send_digest(item: Item, digest_id: int) -> None:
    """Mail one digest of the outbox.

    At least once: a digest that never comes is worse than one that comes twice, and what is sent
    again after a crash carries the same Message-ID, by which a mailbox knows it. Where a second
    mail is worse, as with an invoice, write `at_most_once`: then the mail that was in the hands of
    a worker that died is listed as in doubt, and somebody decides.
    """
    digest = db.session.get(Outbox, digest_id)
    if digest is None:
        item.log.warning("Digest %s is gone from the outbox", digest_id)
        return
    server, posts = MailServer.configured(), newest_posts(digest)
    try:
        message = compose(digest, posts, item.message_id(DOMAIN))
    except (ValueError, MessageError) as error:
        raise NotDone(f"no mail can be made for {digest.user.email!r}: {error}") from error
    # A mail server may take its time: no connection of the database waits for it.
    db.session.commit()
    server.deliver(message, DOMAIN)


def newest_posts(digest: Outbox) -> Sequence[Post]:
    """Return the newest of the posts that `digest` counts."""
    return db.session.scalars(
        select(Post)
        .where(Post.created_at > digest.slot - timedelta(days=1), Post.created_at <= digest.slot)
        .order_by(Post.created_at.desc(), Post.id.desc())
        .limit(NEWEST)
    ).all()


def compose(digest: Outbox, posts: Sequence[Post], message_id: str) -> EmailMessage:
    """Return the mail of `digest`: as often as it is made, of the same content and date."""
    shown = {"digest": digest, "posts": posts, "domain": DOMAIN}
    message = EmailMessage()
    message["Message-ID"] = message_id
    message["Date"] = digest.created_at.astimezone(UTC)
    message["From"] = Address("Daily digest", "digest", DOMAIN)
    message["To"] = Address(one_line(digest.user.name), addr_spec=digest.user.email)
    message["Subject"] = one_line(digest.subject)
    message["List-Unsubscribe"] = f"<mailto:unsubscribe@{DOMAIN}>"
    message.set_content(render_template("mail/digest.txt", **shown))
    message.add_alternative(render_template("mail/digest.html", **shown), subtype="html")
    return message


def one_line(text: str) -> str:
    """Return `text` as a header takes it: a line's end in a name would begin another header."""
    return " ".join(text.split())
