"""The inbox's pages: a list that leads to every mail, and a mail that is looked at unharmed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from flask import Flask
from flask.testing import FlaskClient

from sample_app import create_app
from sample_app.extensions import db
from sample_app.sink import keep

from ..support.databases import Database
from ..support.samples import listed, sample_on


@pytest.fixture
def app(database: Database) -> Iterator[Flask]:
    with sample_on(database, 1, 0) as app:
        yield app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def arrive(app: Flask, number: int = 1, html: str | None = "<p>Hello</p>", **said: str) -> None:
    """Let a mail arrive, for `readerNUMBER`."""
    message = EmailMessage()
    message["Message-ID"] = f"<{number}@example.com>"
    message["Subject"] = said.get("subject", f"Subject {number}")
    message.set_content(said.get("text", "Hello\n"))
    if html:
        message.add_alternative(html, subtype="html")
    with app.app_context(), db.engine.begin() as connection:
        keep(connection, f"reader{number}@example.com", bytes(message))


def test_an_empty_inbox_tells_how_to_fill_it(client: FlaskClient) -> None:
    page = client.get("/inbox").text
    assert "python -m sample_app.sink" in page
    assert "cron worker" in page


def test_outbox_and_inbox_lead_to_each_other(client: FlaskClient) -> None:
    assert 'href="/inbox"' in client.get("/").text
    assert re.search(r'href="/" *>|href="/">', client.get("/inbox").text)


def test_every_mail_is_on_one_page(app: Flask, client: FlaskClient) -> None:
    for number in range(60):
        arrive(app, number)
    seen, pages = listed(client, "/inbox")
    assert len(seen) == len(set(seen)) == 60
    assert pages == 3


def test_a_mail_that_came_again_is_shown_as_such(app: Flask, client: FlaskClient) -> None:
    for number in (1, 2, 2):
        arrive(app, number)
    page = client.get("/inbox").text
    assert re.search(r"<b>2</b> mails", page)
    assert re.search(r"<b>1</b> came again under the same Message-ID", page)
    assert page.count("came 2 times") == 1
    assert "2 times under one Message-ID" in client.get("/inbox/2").text


def test_a_mail_shows_its_headers_its_text_and_its_html(app: Flask, client: FlaskClient) -> None:
    arrive(app, 7, "<p>In HTML</p>", text="In text\n", subject="About it")
    (link,) = re.findall(r'href="(/inbox/\d+)"', client.get("/inbox").text)
    page = client.get(link).text
    assert "&lt;7@example.com&gt;" in page
    assert "<h1>About it</h1>" in page
    assert "In text" in page
    assert 'srcdoc="&lt;p&gt;In HTML&lt;/p&gt;' in page


def test_a_mail_without_html_is_shown(app: Flask, client: FlaskClient) -> None:
    arrive(app, html=None)
    page = client.get("/inbox/1").text
    assert "Hello" in page
    assert "<iframe" not in page


def test_what_a_mail_brings_along_is_locked_in(app: Flask, client: FlaskClient) -> None:
    hostile = '</iframe>"><script>alert(1)</script>'
    arrive(app, html=hostile, text=hostile, subject=hostile)
    for path in ("/inbox", "/inbox/1"):
        page = client.get(path)
        assert "<script>" not in page.text
        assert page.text.count("</iframe>") == (path != "/inbox")
    assert "<iframe" in page.text
    assert re.search(r"<iframe [^>]*\bsandbox(?!=)", page.text)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("number", ["2", "0", "-1", "x", "9" * 30])
def test_a_mail_that_is_not_there_is_not_found(client: FlaskClient, number: str) -> None:
    assert client.get(f"/inbox/{number}").status_code == 404


@pytest.mark.parametrize("before", ["0", "-1", "x", "", "9" * 30])
def test_any_position_is_answered_with_a_page(client: FlaskClient, before: str) -> None:
    assert client.get(f"/inbox?before={before}").status_code == 200


def test_missing_tables_are_answered_with_the_command_that_creates_them(
    database: Database,
) -> None:
    app = create_app({"SQLALCHEMY_DATABASE_URI": database.url})
    answer = app.test_client().get("/inbox")
    assert answer.status_code == 503
    assert "flask --app wsgi sample init-db" in answer.text
    with app.app_context():
        db.engine.dispose()
