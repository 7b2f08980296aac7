"""SMTP: hand one message to the mail server, and tell what is known when that fails."""

from __future__ import annotations

import re
import smtplib
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage

from flask_cronlock import NotDone

from .config import smtp_url

URL = re.compile(r"smtp://(?P<host>\[[0-9a-f:]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?/?")
SECONDS = 10.0
"""How long the server may take for a single answer."""
REFUSALS = (
    smtplib.SMTPHeloError,
    smtplib.SMTPSenderRefused,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPDataError,
    smtplib.SMTPNotSupportedError,
)
UNSET = (
    "No mail server is named: set SMTP_URL, such as smtp://127.0.0.1:2525. "
    "`python -m sample_app.sink` runs one there whose inbox is a page."
)


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed in; nothing that it does is undone by a rollback."""

    host: str
    port: int

    @classmethod
    def from_url(cls, url: str | None) -> MailServer:
        """Return the server of `smtp://HOST:PORT`.

        :raises NotDone: when it is missing or of another form, so that nothing can be sent.
        """
        if url is None:
            raise NotDone(UNSET)
        if not (found := URL.fullmatch(url)):
            # What it was is not told: a password may be in it.
            raise NotDone("SMTP_URL is of another form than smtp://HOST:PORT")
        return cls(found["host"].strip("[]"), int(found["port"] or 25))

    @classmethod
    def configured(cls) -> MailServer:
        return cls.from_url(smtp_url())

    def deliver(self, message: EmailMessage, sender_host: str) -> None:
        """Hand `message` in.

        :raises NotDone: when the server said that it does not take it, or was not reached. Any
            other error leaves it open: the server may have the message.
        """
        try:
            smtp = smtplib.SMTP(self.host, self.port, sender_host, timeout=SECONDS)
        except OSError as error:
            raise NotDone(f"{self.host}:{self.port} takes no mail: {error}") from error
        try:
            smtp.send_message(message)
        except REFUSALS as refusal:
            raise NotDone(f"{self.host}:{self.port} refused the mail: {refusal}") from refusal
        finally:
            # The server has answered for the message by now; how the goodbye ends changes nothing.
            with suppress(OSError):
                smtp.quit()
            smtp.close()
