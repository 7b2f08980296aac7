"""Hostile requests, below every client: WSGI environments, and what an app says to them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any

from flask import Flask
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder, run_wsgi_app

from .endpoint import LONGEST_BODY
from .fuzz_bytes import GOOD_SLOT, SLOT_HEADER
from .worlds import SECRET

OURS = re.compile(r"/*api/+cron(/.*)?", re.DOTALL)
"""The paths that the endpoint answers for, whoever asks for whatever."""
TELLING = ("Traceback", "SELECT", "INSERT", "psycopg", "sqlalchemy", "<html", SECRET)

# A server hands headers and paths to the app as latin-1, whatever their bytes mean.
header_text = st.text(st.characters(max_codepoint=255), max_size=60)
good_header = st.sampled_from(["Bearer ", "bearer ", "BEARER "]).map(lambda kind: kind + SECRET)


@st.composite
def _near_misses(draw: st.DrawFn) -> str:
    """The right header with one place changed."""
    text = draw(good_header)
    place = draw(st.integers(0, len(text) - 1))
    length = draw(st.integers(0, 3))
    return text[:place] + draw(header_text.filter(lambda t: len(t) < 4)) + text[place + length :]


authorizations = st.one_of(
    good_header, st.none(), _near_misses(), header_text, header_text.map("Bearer ".__add__)
)
PIECES = ["/", "//", "api", "cron", "/api/cron/", "x", "daily", ".", "..", "%2F", "%00", "|", "?"]
PIECES += ["#", ";", "\\", "é", "Ã©", "\xff", "\0", "\n", "\r\n", " ", "\x85", "x" * 3000]
pieces = st.sampled_from(PIECES)
paths = st.one_of(
    st.sampled_from(["/api/cron/x", "//api//cron///x/", "/api/cron/daily", "/api/cron/nobody"]),
    st.lists(pieces | header_text, max_size=8).map("".join),
    st.lists(pieces | header_text, max_size=4).map(lambda parts: "/api/cron/x" + "".join(parts)),
    st.lists(pieces | header_text, max_size=4).map(lambda parts: "/api//cron/" + "".join(parts)),
)
methods = st.sampled_from(["POST"] * 6 + ["GET", "HEAD", "OPTIONS", "PUT", "TRACE"]) | st.text(
    st.characters(max_codepoint=255), max_size=10
)
slots = st.one_of(
    st.none(),
    header_text,
    st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+-][0-9]{2}:[0-9]{2}"),
)
OTHER_HEADERS = ["CONTENT_TYPE", "CONTENT_LENGTH", "QUERY_STRING", "HTTP_COOKIE", "HTTP_ACCEPT"]
OTHER_HEADERS += ["HTTP_X_HTTP_METHOD_OVERRIDE", "HTTP_X_FORWARDED_FOR", "HTTP_X_SCHEDULED_TIME"]
OTHER_HEADERS += ["HTTP_TRANSFER_ENCODING", "HTTP_RANGE", "HTTP_EXPECT"]
other_headers = st.dictionaries(st.sampled_from(OTHER_HEADERS), header_text, max_size=4)
upgrades = st.just({"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket"})


@dataclass(frozen=True)
class Case:
    """One request, as a server would hand it to the app."""

    path: str = "/api/cron/x"
    method: str = "POST"
    authorization: str | None = f"Bearer {SECRET}"
    slot: str | None = None
    body: bytes = b""
    headers: dict[str, str] | None = None

    @property
    def ours(self) -> bool:
        return OURS.fullmatch(self.path) is not None

    @property
    def let_in(self) -> bool:
        """Whether the secret is right, said once more and in another way."""
        kind, token = (self.authorization or "")[:7], (self.authorization or "")[7:]
        return kind.lower() == "bearer " and token == SECRET

    @property
    def job(self) -> str | None:
        """The job that may run: the path has its three parts, and no more than slashes beside."""
        parts = [part for part in self.path.split("/") if part]
        posted = self.method.upper() == "POST"
        named = len(parts) == 3 and parts[:2] == ["api", "cron"]
        return parts[2] if named and posted and self.let_in else None

    def environ(self) -> dict[str, Any]:
        environ = EnvironBuilder(method="POST", data=self.body).get_environ()
        named = {"HTTP_AUTHORIZATION": self.authorization}
        named["HTTP_" + SLOT_HEADER.upper().replace("-", "_")] = self.slot
        environ.update({key: value for key, value in named.items() if value is not None})
        environ.update(self.headers or {}, PATH_INFO=self.path, REQUEST_METHOD=self.method)
        return environ


requests = st.builds(
    Case,
    path=paths,
    method=methods,
    authorization=authorizations,
    slot=slots,
    body=st.binary(max_size=200),
    headers=other_headers | upgrades,
)


def spoilt(random: Random) -> Case:
    """Return a good request with one to three things done to its parts."""
    parts = {
        "path": random.choice(["/api/cron/x", "/api/cron/daily"]),
        "method": "POST",
        "authorization": f"Bearer {SECRET}",
        "slot": GOOD_SLOT,
        "body": '{"slot": "now"}',
    }
    for _ in range(random.randint(1, 3)):
        part = random.choice(list(parts))
        text = parts[part]
        place, length = random.randint(0, len(text)), random.randint(0, 3)
        piece = random.choice([*PIECES, "", chr(random.randrange(256))])
        parts[part] = text[:place] + piece + text[place + length :]
    return Case(**{**parts, "body": parts["body"].encode()})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Said:
    status: int
    headers: dict[str, str]
    data: bytes

    def body(self, method: str = "POST") -> dict[str, Any]:
        """Return the JSON, once all that holds for every answer of the endpoint was checked."""
        assert not 300 <= self.status < 400
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Cache-Control"] == "no-store"
        assert len(self.data) < LONGEST_BODY
        assert not [word for word in TELLING if word.encode() in self.data]
        return {} if method.upper() == "HEAD" else dict(json.loads(self.data))


def ask(app: Flask, case: Case) -> Said:
    """Put *case* to the app as a server would."""
    answer, status, headers = run_wsgi_app(app.wsgi_app, case.environ(), buffered=True)
    return Said(int(status.split()[0]), dict(headers), b"".join(answer))
