"""One digest as a mail: what is in it, and that it is the same whenever it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from email.message import EmailMessage
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from sqlalchemy import func, select, update

from sample_app.digest import ZONE, write_digests
from sample_app.extensions import db
from sample_app.mail import NEWEST, compose, newest_posts
from sample_app.models import Outbox, Post, User

from ..support.databases import Database
from ..support.samples import sample_on

SLOT = datetime(2026, 10, 25, 7, tzinfo=ZoneInfo(ZONE))
ID = "<of-this-item@digest.example>"


@pytest.fixture(autouse=True)
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, 10, 0) as app, app.app_context():
        db.session.execute(update(Post).values(created_at=SLOT - timedelta(hours=1)))
        yield app
        db.session.remove()


def mail(**user: str) -> EmailMessage:
    """Return the mail of one user's digest."""
    if user:
        db.session.execute(update(User).values(**user))
    write_digests(db.session(), SLOT)
    digest = db.session.scalars(select(Outbox).order_by(Outbox.id)).first()
    assert digest
    return compose(digest, newest_posts(digest), ID)


def body(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part
    return str(part.get_content())


def test_a_mail_is_addressed_and_names_its_item() -> None:
    message = mail()
    assert message["Message-ID"] == ID
    assert message["To"].addresses[0].display_name.startswith("Reader ")
    assert message["To"].addresses[0].domain == "example.com"
    assert message["Subject"].startswith("Good morning, Reader ")
    assert message["Subject"].endswith(": 30 new posts")


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_text_and_html_greet_the_reader_and_count_the_posts(kind: str) -> None:
    shown = body(mail(name="Ada"), kind)
    assert "Good morning, Ada" in shown
    assert "30 new posts since yesterday, the newest of them:" in shown
    assert "07:00" in shown


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_the_newest_posts_are_shown_newest_first(kind: str) -> None:
    posts = db.session.scalars(select(Post).order_by(Post.id)).all()
    for number, post in enumerate(posts):
        post.title = f"Post {number:02}."
        post.created_at = SLOT - timedelta(minutes=number)
    db.session.flush()
    shown = body(mail(), kind)
    places = [shown.find(f"Post {number:02}.") for number in range(NEWEST + 1)]
    assert places[-1] == -1
    assert -1 not in places[:-1]
    assert places[:-1] == sorted(places[:-1])


def test_posts_from_before_and_after_its_day_are_not_shown() -> None:
    first, second, third = db.session.scalars(select(Post).limit(3))
    db.session.execute(update(Post).values(created_at=SLOT - timedelta(days=2)))
    for post, title, at in (
        (first, "Too late", SLOT + timedelta(seconds=1)),
        (second, "Too old", SLOT - timedelta(days=1)),
        (third, "In time", SLOT),
    ):
        post.title, post.created_at = title, at
    db.session.flush()
    shown = body(mail(), "plain")
    assert "1 new post since" in shown
    assert "In time" in shown
    assert "Too" not in shown


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_day_without_posts_is_told(kind: str) -> None:
    db.session.execute(update(Post).values(created_at=SLOT - timedelta(days=2)))
    assert "0 new posts since yesterday." in body(mail(), kind)


def test_what_a_user_wrote_is_no_html_but_as_it_is_in_the_text() -> None:
    db.session.execute(update(Post).values(title="<img src=x> & more"))
    message = mail(name="<script>")
    assert "<script>" not in body(message, "html")
    assert "<img" not in body(message, "html")
    assert "&lt;img src=x&gt; &amp; more" in body(message, "html")
    assert "Good morning, <script>" in body(message, "plain")
    assert "<img src=x> & more" in body(message, "plain")


def test_a_name_of_several_lines_adds_no_header() -> None:
    message = mail(name="Eve\r\nBcc: all@example.com")
    assert "Bcc" not in message
    assert message["Subject"].startswith("Good morning, Eve Bcc: all@example.com")
    assert b"\nBcc:" not in bytes(message).split(b"\n\n")[0]


def test_a_name_of_any_script_arrives_as_it_is() -> None:
    message = mail(name="Zoë 愛 “Ω”")
    assert message["To"].addresses[0].display_name == "Zoë 愛 “Ω”"
    assert bytes(message).split(b"\n\n")[0].isascii()
    assert "Good morning, Zoë 愛 “Ω”" in body(message, "plain")


def test_a_mail_is_the_same_whenever_it_is_made() -> None:
    first = mail()
    db.session.add(Post(user_id=1, title="Newer", created_at=func.now()))
    db.session.flush()
    db.session.expire_all()
    again = mail()
    assert first.items()[:-1] == again.items()[:-1]
    for kind in ("plain", "html"):
        assert body(first, kind) == body(again, kind)


def test_a_mail_is_dated_as_its_digest() -> None:
    mail()
    db.session.execute(update(Outbox).values(created_at=SLOT))
    db.session.expire_all()
    assert mail()["Date"] == "Sun, 25 Oct 2026 06:00:00 +0000"
