"""Handing in a mail: what failed before it was taken is known, and what may have been is not."""

from __future__ import annotations

import asyncio
import smtplib
import socket
from email.message import EmailMessage
from typing import Any

import pytest

from flask_cronlock import NotDone
from sample_app import smtp
from sample_app.smtp import MailServer

from ..support.mail_servers import Kept, serving


@pytest.fixture
def message() -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "a@example.com", "b@example.com", "Hello"
    made["Message-ID"] = "<one@example.com>"
    made.set_content("A line.\n")
    return made


def test_a_mail_arrives_as_it_was(message: EmailMessage) -> None:
    kept = Kept()
    with serving(kept) as server:
        server.deliver(message, "example.com")
    (mail,) = kept.mails
    assert b"Message-ID: <one@example.com>\r\n" in mail
    assert mail.endswith(b"\r\n\r\nA line.\r\n")


def test_a_server_that_is_not_there_took_nothing(message: EmailMessage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(NotDone, match=f"127.0.0.1:{port} takes no mail"):
        MailServer("127.0.0.1", port).deliver(message, "example.com")


def test_a_server_that_says_nothing_took_nothing(
    message: EmailMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = MailServer(*silent.getsockname())
        with pytest.raises(NotDone, match="takes no mail"):
            server.deliver(message, "example.com")


class Refuses(Kept):
    """Refuses at one command."""

    def __init__(self, command: str) -> None:
        super().__init__()
        setattr(self, f"handle_{command}", self.refuse)

    async def refuse(self, *_: Any) -> str:
        return "550 No"


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_mail_that_was_refused_was_not_taken(message: EmailMessage, command: str) -> None:
    with serving(Refuses(command)) as server, pytest.raises(NotDone, match=r"refused.*No"):
        server.deliver(message, "example.com")


class Leaves(Kept):
    """Takes the mail, and is gone before it has said so."""

    async def handle_DATA(self, server: Any, session: object, envelope: object) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        server.transport.abort()
        return answer


class Dawdles(Kept):
    """Takes the mail, and is slow to say so."""

    async def handle_DATA(self, server: Any, session: object, envelope: object) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        await asyncio.sleep(60)
        return answer


@pytest.mark.parametrize("handler", [Leaves, Dawdles])
def test_a_mail_without_an_answer_may_have_been_taken(
    message: EmailMessage, monkeypatch: pytest.MonkeyPatch, handler: type[Kept]
) -> None:
    monkeypatch.setattr(smtp, "SECONDS", 3.0)
    kept = handler()
    with serving(kept) as server:
        with pytest.raises(smtplib.SMTPServerDisconnected):
            server.deliver(message, "example.com")
        assert len(kept.mails) == 1


class LeavesWithoutGoodbye(Kept):
    """Takes the mail, says so, and is gone, or is silent, at the goodbye."""

    async def handle_QUIT(self, server: Any, *_: object) -> str:
        server.transport.abort()
        return "221 Bye"


def test_how_the_goodbye_ends_changes_nothing(message: EmailMessage) -> None:
    kept = LeavesWithoutGoodbye()
    with serving(kept) as server:
        server.deliver(message, "example.com")
    assert len(kept.mails) == 1


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example.com:2525", MailServer("mail.example.com", 2525)),
        ("smtp://mail.example.com", MailServer("mail.example.com", 25)),
        ("smtp://127.0.0.1:2525/", MailServer("127.0.0.1", 2525)),
        ("smtp://[::1]:2525", MailServer("::1", 2525)),
    ],
)
def test_the_server_is_named_by_a_url(
    monkeypatch: pytest.MonkeyPatch, url: str, server: MailServer
) -> None:
    monkeypatch.setenv("SMTP_URL", url)
    assert MailServer.configured() == server


@pytest.mark.parametrize("unset", ["", "  "])
def test_without_a_server_nothing_is_sent_and_the_cure_is_named(
    monkeypatch: pytest.MonkeyPatch, unset: str
) -> None:
    monkeypatch.setenv("SMTP_URL", unset)
    with pytest.raises(NotDone, match=r"set SMTP_URL, such as smtp://127\.0\.0\.1:2525"):
        MailServer.configured()


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "smtps://mail.example.com",
        "smtp://",
        "smtp://mail.example.com:many",
        "smtp://mail.example.com/path",
        "smtp://user:pass-word@mail.example.com",
    ],
)
def test_a_url_of_another_form_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(NotDone, match="smtp://HOST:PORT") as refused:
        MailServer.from_url(url)
    assert "pass-word" not in str(refused.value)
