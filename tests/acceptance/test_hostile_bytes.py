"""Spoilt requests on a socket to a real gunicorn: nothing runs that should not, nothing is left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ..support.databases import Database
from ..support.fuzz import number_of_cases, seed
from ..support.fuzz_bytes import GOOD, exchange, spoil
from ..support.instances import Instance, gunicorn
from ..support.processes import wait_until
from ..support.worlds import SECRET, World, world_on

OUTCOME = b'"outcome": "'
BROKEN = ("Error handling request", "Exception on", "could not be begun", "Traceback")


@pytest.fixture(scope="module")
def site(module_database: Database) -> Iterator[World]:
    with world_on(module_database) as made:
        yield made


@pytest.fixture(scope="module")
def instance(site: World) -> Iterator[Instance]:
    # A keep-alive connection is closed as soon as its sender has no more to say.
    options = ["-w", "1", "--threads", "2", "--keep-alive", "1"]
    with gunicorn(site.database, *options, target="tests.support.fuzz_app:app") as made:
        yield made


def held(instance: Instance) -> tuple[int, int]:
    """Return how many files and threads the worker has."""
    (pid,) = instance.workers()
    folders = (Path(f"/proc/{pid}/fd"), Path(f"/proc/{pid}/task"))
    files, threads = (len(list(folder.iterdir())) for folder in folders)
    return files, threads


def check(sent: bytes, said: bytes) -> None:
    """Check each answer in *said*: ours are short JSON, the server's own repeat what is wrong."""
    for head, body in re.findall(rb"HTTP/1\.1 (.*?)\r\n\r\n(.*?)(?=HTTP/1\.1 |$)", said, re.DOTALL):
        assert not head.startswith((b"3", b"5"))
        assert b"Traceback" not in body
        if b"application/json" in head:
            assert len(body) < 1024
            assert SECRET.encode() not in head + body
            assert body == b"" or isinstance(json.loads(body), dict)
    if OUTCOME in said:
        assert b"POST " in sent
        assert re.search(rb"bearer " + SECRET.encode(), sent, re.IGNORECASE)


def test_spoilt_requests_run_nothing_else_and_leave_nothing(
    site: World, instance: Instance
) -> None:
    random, ran = Random(seed()), 0
    (worker,) = instance.workers()
    for _ in range(4):
        assert OUTCOME in exchange(instance.port, GOOD)
    before, begun = held(instance), site.marks

    for _ in range(number_of_cases(300)):
        sent = spoil(GOOD, random)
        said = exchange(instance.port, sent)
        check(sent, said)
        ran += said.count(b'"outcome": "ran"')

    assert site.marks - begun == ran
    assert ran > 0
    wait_until(lambda: all(now <= then for now, then in zip(held(instance), before, strict=True)))
    assert instance.workers() == [worker]
    assert site.database.advisory_locks() == 0
    assert not [sign for sign in BROKEN if sign in instance.log.read_text()]
    assert b'"outcome": "ran"' in exchange(instance.port, GOOD)
