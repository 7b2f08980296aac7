"""Bytes on a socket to a real gunicorn: what no test client would send."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPResponse

import pytest

from ..support.databases import Database
from ..support.instances import Instance, gunicorn
from ..support.worlds import SECRET, world_on

NOT_ASCII = "schlüssel-für-cron-€"
UNLIMITED = ["--limit-request-line", "0", "--limit-request-field_size", "200000"]


@dataclass
class Raw:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> dict[str, object]:
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Cache-Control"] == "no-store"
        assert "Location" not in self.headers
        assert len(self.data) < 1024
        return dict(json.loads(self.data))


def send(
    instance: Instance, target: bytes, *headers: bytes, method: bytes = b"POST", body: bytes = b""
) -> Raw:
    """Send exactly these bytes, and return what comes back."""
    lines = [
        method + b" " + target + b" HTTP/1.1",
        *([] if any(line.lower().startswith(b"host:") for line in headers) else [b"Host: app"]),
        b"Connection: close",
        b"Content-Length: %d" % len(body),
        *headers,
    ]
    with socket.create_connection(("127.0.0.1", instance.port), 20) as stream:
        stream.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        response = HTTPResponse(stream, method=method.decode())
        response.begin()
        return Raw(response.status, dict(response.headers), response.read())


def bearer(secret: str | bytes) -> bytes:
    return b"Authorization: Bearer " + (secret.encode() if isinstance(secret, str) else secret)


def assert_no_request_broke(instance: Instance) -> None:
    log = instance.log.read_text()
    for sign in ("Error handling request", "could not be begun", "Exception on", SECRET):
        assert sign not in log


@pytest.fixture(scope="module")
def instance(module_database: Database) -> Iterator[Instance]:
    with (
        world_on(module_database),
        gunicorn(module_database, "-w", "1", *UNLIMITED) as made,
    ):
        yield made
        assert_no_request_broke(made)


@pytest.fixture(scope="module")
def instance_with_an_umlaut(module_database: Database) -> Iterator[Instance]:
    with (
        world_on(module_database),
        gunicorn(module_database, "-w", "1", *UNLIMITED, CRON_SECRET=NOT_ASCII) as made,
    ):
        yield made
        assert_no_request_broke(made)


@pytest.mark.parametrize("host", [b"app", b"evil.example"])
@pytest.mark.parametrize(
    "target",
    [
        b"/api/cron/idle",
        b"/api/cron/idle/",
        b"//api/cron/idle",
        b"///api/cron/idle",
        b"/api//cron/idle",
        b"/api/cron//idle",
        b"/api/cron/idle//",
        b"//api///cron//idle//",
        b"/api%2Fcron/idle",
        b"/api/cron/idle?slot=&secret=",
        b"http://evil.example/api/cron/idle",
    ],
)
def test_every_spelling_of_the_path_is_served_and_never_redirected(
    instance: Instance, target: bytes, host: bytes
) -> None:
    with_secret = send(instance, target, b"Host: " + host, bearer(SECRET))
    without = send(instance, target, b"Host: " + host)

    assert (with_secret.status, without.status) == (200, 401)
    assert with_secret.body["job"] == "idle"
    assert without.body == {"error": "Unauthorized"}


@pytest.mark.parametrize(
    "method", [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"PATCH", b"DELETE", b"TRACE", b"PROPFIND"]
)
@pytest.mark.parametrize("target", [b"/api/cron/idle", b"//api/cron/idle/"])
def test_other_methods_are_refused(instance: Instance, method: bytes, target: bytes) -> None:
    answer = send(instance, target, bearer(SECRET), method=method)

    assert answer.status == 405
    assert answer.headers["Allow"] == "POST"
    assert answer.data == b"" if method == b"HEAD" else answer.body == {"error": "Use POST"}


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b"Authorization:"],
        [b"Authorization: Bearer"],
        [b"Authorization: Bearer \xe9"],
        [b"Authorization: \xff\xfe\xfd"],
        [bearer("x" * 100_000)],
        [bearer(b" " + SECRET.encode())],
        [b"Authorization: Bearer\t" + SECRET.encode()],
        [b"Authorization: Basic " + SECRET.encode()],
        [b"Authorization: " + SECRET.encode()],
        [bearer(SECRET), bearer(SECRET)],
        [bearer("wrong"), bearer(SECRET)],
        [b"X-Authorization: Bearer " + SECRET.encode()],
        [b"Cookie: secret=" + SECRET.encode()],
    ],
    ids=lambda headers: repr(b"+".join(headers))[:40],
)
@pytest.mark.parametrize("target", [b"/api/cron/idle", b"/api/cron/no-such-job"])
def test_a_wrong_header_is_unauthorized(
    instance: Instance, headers: list[bytes], target: bytes
) -> None:
    answer = send(instance, target, *headers)

    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.body == {"error": "Unauthorized"}


@pytest.mark.parametrize("header", [bearer(SECRET + "\0"), bearer(b"\0"), b"Authorization\0: x"])
def test_a_nul_gets_no_further_than_the_server(instance: Instance, header: bytes) -> None:
    assert send(instance, b"/api/cron/idle", header).status in (400, 401)


def test_the_scheme_may_be_in_lower_case(instance: Instance) -> None:
    answer = send(instance, b"/api/cron/idle", b"authorization: bearer " + SECRET.encode())

    assert answer.status == 200


@pytest.mark.parametrize("target", [b"/api/cron/idle?secret=", b"/api/cron/idle?token="])
def test_a_secret_in_the_query_or_in_a_form_lets_nobody_in(
    instance: Instance, target: bytes
) -> None:
    form = b"Content-Type: application/x-www-form-urlencoded"
    secret = SECRET.encode()

    assert send(instance, target + secret).status == 401
    assert send(instance, b"/api/cron/idle", form, body=b"secret=" + secret).status == 401


@pytest.mark.parametrize(
    ("name", "by_the_app"),
    [
        (b"x');%20drop%20table--", False),
        (b"x%27%29%3B%20drop%20table--", False),
        (b"..", False),
        (b"%2e%2e", False),
        (b"idle%00", False),
        (b"%00", False),
        (b"idle%0d%0aX-Injected:%20yes", False),
        (b"cafe%CC%81", False),
        (b"%ff%fe", False),
        (b"IDLE", False),
        (b"x" * 10_000, False),
        (b"a%2Fb", True),
        (b"../cron/idle", True),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_hostile_name_is_not_found(instance: Instance, name: bytes, by_the_app: bool) -> None:
    answer = send(instance, b"/api/cron/" + name, bearer(SECRET))

    assert answer.status == 404
    assert "X-Injected" not in answer.headers
    if not by_the_app:
        assert answer.body == {"error": "Unknown job"}


def test_a_body_that_nobody_reads_does_no_harm(instance: Instance) -> None:
    answer = send(instance, b"/api/cron/idle", bearer(SECRET), body=b"x" * 1_000_000)

    assert answer.status == 200


def test_a_secret_that_is_not_ascii_is_sent_as_utf_8(instance_with_an_umlaut: Instance) -> None:
    sent = {
        b"utf-8": NOT_ASCII.encode(),
        b"latin-1": NOT_ASCII.encode("latin-1", "replace"),
        b"ascii": NOT_ASCII.encode("ascii", "replace"),
        b"twice": NOT_ASCII.encode().decode("latin-1").encode(),
    }

    statuses = {
        encoding: send(instance_with_an_umlaut, b"/api/cron/idle", bearer(secret)).status
        for encoding, secret in sent.items()
    }

    assert statuses == {b"utf-8": 200, b"latin-1": 401, b"ascii": 401, b"twice": 401}


def test_a_failing_jobs_answer_says_nothing_of_its_error(instance: Instance) -> None:
    answer = send(instance, b"/api/cron/failing", bearer(SECRET))

    assert answer.status == 500
    assert answer.body["error"] == "Job failed"
    assert b"as asked" not in answer.data
