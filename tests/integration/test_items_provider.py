"""A provider that accepts a mail and answers too late: it is not mailed without end."""

from __future__ import annotations

import http.server
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pytest

from flask_cronlock import Item, NotDone

from ..support.tasks import GivenUp, records, rows, work_to_the_end
from ..support.worlds import World

CLIENTS_PATIENCE = 0.3


class Provider(http.server.ThreadingHTTPServer):
    """Accepts what it is sent, and answers late for the first *late* requests."""

    daemon_threads = True

    def __init__(self, late: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.late = late
        self.accepted: list[str] = []
        self.ended = threading.Event()

    @property
    def mails(self) -> Counter[str]:
        """What a provider sends that minds the keys."""
        return Counter(set(self.accepted))


class Handler(http.server.BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        self.server.accepted.append(self.headers["Idempotency-Key"])
        if len(self.server.accepted) <= self.server.late:
            self.server.ended.wait(60)
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def provider(late: int) -> Iterator[Provider]:
    with Provider(late) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


def send(port: int, item: Item) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mails", b"{}", {"Idempotency-Key": item.token}
    )
    try:
        urllib.request.urlopen(request, timeout=CLIENTS_PATIENCE).close()
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise NotDone("the connection was refused") from error
        raise


def deliver(world: World, delivery: str, port: int) -> object:
    """Have one mail worked off, however long that takes."""
    world.cron.task(delivery, delivery=delivery, attempts=3)(lambda item: send(port, item))
    world.cron.defer(world.db.session, delivery)
    world.db.session.commit()
    [row] = rows(world)
    return work_to_the_end(world, row)


def test_one_that_is_always_late_gets_one_key_and_no_more_than_the_attempts(
    entered_world: World,
) -> None:
    with provider(late=99) as server:
        ended = deliver(entered_world, "at_least_once", server.server_port)
    assert isinstance(ended, GivenUp)
    assert "in doubt" in str(ended)
    assert len(server.accepted) == 3
    assert len(server.mails) == 1
    assert records(entered_world) == [("doubt", 3, True)]


def test_one_that_is_late_once_gets_the_same_key_again(entered_world: World) -> None:
    with provider(late=1) as server:
        deliver(entered_world, "at_least_once", server.server_port)
    assert len(server.accepted) == 2
    assert len(server.mails) == 1
    assert records(entered_world) == [("done", 2, False)]


def test_at_most_once_it_is_sent_once_and_left_in_doubt(entered_world: World) -> None:
    with provider(late=1) as server:
        deliver(entered_world, "at_most_once", server.server_port)
    assert len(server.accepted) == 1
    assert records(entered_world) == [("doubt", 1, True)]


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_one_that_is_not_there_has_surely_sent_nothing(entered_world: World, delivery: str) -> None:
    with provider(late=0) as server:
        port = server.server_port
    deliver(entered_world, delivery, port)
    assert records(entered_world) == [("failed", 3, False)]
