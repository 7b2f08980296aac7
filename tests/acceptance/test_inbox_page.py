"""The sample's inbox, in a real browser: a mail is seen, and can do nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sample_app.extensions import db
from sample_app.sink import keep

from ..support.chromium import rendered
from ..support.databases import Database
from ..support.instances import gunicorn
from ..support.samples import sample_on


@contextmanager
def beacon() -> Iterator[tuple[str, list[str]]]:
    """Run a server that notes what it is asked for; yield its URL and the notes."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = HOSTILE.format(url="").encode() if self.path == "/page" else b""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


HOSTILE = """
<p>Hello</p>
<img src="{url}/image">
<link rel="stylesheet" href="{url}/style">
<iframe src="{url}/frame"></iframe>
<meta http-equiv="refresh" content="0; url={url}/refresh">
<form id="f" action="{url}/form"><input name="a"></form>
<script>
  fetch("{url}/script");
  document.getElementById("f").submit();
  top.document.title = "Taken over";
</script>
"""


def test_a_browser_shows_the_mails_and_what_they_bring_along_does_nothing(
    database: Database,
) -> None:
    with beacon() as (url, asked), sample_on(database, 1, 0) as app:
        message = EmailMessage()
        message["Message-ID"], message["Subject"] = "<1@example.com>", "About nothing"
        message.set_content("Hello\n")
        message.add_alternative(HOSTILE.format(url=url), subtype="html")
        with app.app_context(), db.engine.begin() as connection:
            keep(connection, "reader1@example.com", bytes(message))
        with gunicorn(database, target="wsgi:app") as instance:
            page = f"http://127.0.0.1:{instance.port}/inbox"
            inbox, mail = rendered(page), rendered(f"{page}/1")
    assert 'href="/inbox/1"' in inbox
    assert "reader1@example.com" in inbox
    assert "<title>About nothing</title>" in mail
    assert asked == []


def test_the_same_in_a_page_of_its_own_does_all_it_can() -> None:
    with beacon() as (url, asked):
        rendered(f"{url}/page")
    assert {"/image", "/style", "/frame", "/script"} <= set(asked)
