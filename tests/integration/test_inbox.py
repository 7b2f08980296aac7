"""What arrives in the sample's inbox: each mail of a recipient once, however often it comes."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage
from smtplib import SMTPServerDisconnected

import pytest
from flask import Flask
from sqlalchemy import event, select

from flask_cronlock import NotDone
from sample_app import inbox
from sample_app.extensions import db
from sample_app.models import Mail
from sample_app.sink import Sink
from sample_app.smtp import MailServer

from ..support.databases import Database
from ..support.mail_servers import serving
from ..support.samples import sample_on

SUBSCRIBERS = 3


@pytest.fixture(autouse=True)
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, SUBSCRIBERS, 1) as app, app.app_context():
        yield app
        db.session.remove()


@pytest.fixture
def server(app: Flask) -> Iterator[MailServer]:
    with serving(Sink(db.engine)) as server:
        yield server


def send(server: MailServer, message_id: str | None, *to: str) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.com", ", ".join(to), "Hello"
    if message_id:
        message["Message-ID"] = message_id
    message.set_content("Grüße\n")
    server.deliver(message, "example.com")


def arrived() -> list[tuple[str, str, int]]:
    rows = db.session.execute(
        select(Mail.recipient, Mail.message_id, Mail.deliveries).order_by(Mail.id)
    )
    return [tuple(row) for row in rows]


def test_a_mail_arrives_with_its_subject_and_its_text(server: MailServer) -> None:
    send(server, "<1@x>", "reader1@example.com")
    mail = db.session.scalars(select(Mail)).one()
    assert mail.subject == "Hello"
    read = inbox.read(mail)
    assert (read.text or "").splitlines() == ["Grüße"]
    assert read.html is None


def test_a_mail_that_comes_again_is_the_same_one(server: MailServer) -> None:
    for _ in range(3):
        send(server, "<1@x>", "reader1@example.com")
    assert arrived() == [("reader1@example.com", "<1@x>", 3)]
    assert inbox.totals(db.session()) == inbox.Totals(mails=1, users=1, repeated=1)


def test_each_recipient_has_an_inbox(server: MailServer) -> None:
    send(server, "<1@x>", "reader1@example.com", "reader2@example.com")
    send(server, "<1@x>", "reader2@example.com")
    assert arrived() == [("reader1@example.com", "<1@x>", 1), ("reader2@example.com", "<1@x>", 2)]
    assert inbox.totals(db.session()) == inbox.Totals(mails=2, users=2, repeated=1)


def test_two_mails_that_are_alike_are_two(server: MailServer) -> None:
    send(server, "<1@x>", "reader1@example.com")
    send(server, "<2@x>", "reader1@example.com")
    send(server, None, "reader1@example.com")
    send(server, None, "reader1@example.com")
    assert [deliveries for _, _, deliveries in arrived()] == [1, 1, 1, 1]


def test_users_are_counted_by_their_mails(server: MailServer) -> None:
    assert inbox.per_user(db.session()) == {(True, 0): SUBSCRIBERS, (False, 0): 1}
    db.session.rollback()
    send(server, "<1@x>", "reader1@example.com")
    send(server, "<1@x>", "reader1@example.com")
    send(server, "<2@x>", "reader2@example.com")
    send(server, "<3@x>", "reader2@example.com")
    counted = {(True, 0): 1, (True, 1): 1, (True, 2): 1, (False, 0): 1}
    assert inbox.per_user(db.session()) == counted


def test_a_mail_that_cannot_be_kept_is_refused(server: MailServer, database: Database) -> None:
    database.query("ALTER TABLE inbox RENAME TO elsewhere")
    with pytest.raises(NotDone, match="451"):
        send(server, "<1@x>", "reader1@example.com")
    database.query("ALTER TABLE elsewhere RENAME TO inbox")
    send(server, "<1@x>", "reader1@example.com")
    assert arrived() == [("reader1@example.com", "<1@x>", 1)]


def test_a_mail_that_waits_for_the_database_holds_up_no_other(
    server: MailServer, database: Database
) -> None:
    send(server, "<1@x>", "reader1@example.com")
    with database.connect() as other, other.transaction():
        other.execute("SELECT FROM inbox FOR UPDATE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sample_app.smtp.SECONDS", 1.0)
            with pytest.raises(SMTPServerDisconnected):
                send(server, "<1@x>", "reader1@example.com")
        send(server, "<2@x>", "reader2@example.com")
    assert ("reader2@example.com", "<2@x>", 1) in arrived()


@pytest.mark.parametrize("number", [1, 40])
def test_a_page_reads_no_mails_contents(number: int) -> None:
    db.session.add_all(
        Mail(message_id=f"<{one}@x>", recipient="r", subject="s", content=b"")
        for one in range(number)
    )
    db.session.commit()
    sent: list[str] = []

    @event.listens_for(db.engine, "before_cursor_execute")
    def count(conn: object, cursor: object, statement: str, *rest: object) -> None:
        sent.append(statement)

    assert len(inbox.newest(db.session(), None, 25)) == min(number, 25)
    event.remove(db.engine, "before_cursor_execute", count)
    assert len(sent) == 1
    assert "content" not in sent[0]


def test_text_in_an_unknown_character_set_is_shown_as_far_as_it_can_be() -> None:
    content = b"Content-Type: text/plain; charset=klingon\r\n\r\nqapla'\xff\r\n"
    read = inbox.read(Mail(content=content))
    assert read.text
    assert read.text.startswith("qapla'")


@pytest.mark.parametrize("content", [b"", b"\0\xff", b"Subject: \xff\r\n\r\n", b"no header at all"])
def test_what_is_hardly_a_mail_is_shown(content: bytes) -> None:
    assert isinstance(inbox.read(Mail(content=content)), inbox.Letter)
