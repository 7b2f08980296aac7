"""Spoilt requests on a socket to a real gunicorn: nothing runs that should not, nothing is left."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ..support.databases import Database
from ..support.fuzz import number_of_cases, seed
from ..support.fuzz_bytes import GOOD, SLOT_HEADER, exchange, spoil
from ..support.instances import Instance, gunicorn
from ..support.processes import wait_until
from ..support.worlds import SECRET, World, world_on

OUTCOME = b'"outcome": "'
UNKNOWN_CODING = b"501 Bad Request"
"""What gunicorn itself says to a transfer coding that it does not know."""
BROKEN = ("Error handling request", "Exception on", "could not be begun", "Traceback")


@pytest.fixture(scope="module")
def site(module_database: Database) -> Iterator[World]:
    with world_on(module_database) as made:
        yield made


@pytest.fixture(scope="module")
def instance(site: World) -> Iterator[Instance]:
    # A keep-alive connection is closed as soon as its sender has no more to say.
    options = ["-w", "1", "--threads", "1", "--keep-alive", "1"]
    with gunicorn(site.database, *options, target="tests.support.fuzz_app:app") as made:
        yield made


def held(instance: Instance) -> tuple[int, int]:
    """Return how many files and threads the worker has."""
    (pid,) = instance.workers()
    folders = (Path(f"/proc/{pid}/fd"), Path(f"/proc/{pid}/task"))
    files, threads = (len(list(folder.iterdir())) for folder in folders)
    return files, threads


def check(sent: bytes, said: bytes) -> list[dict[str, Any]]:
    """Check each answer, and return ours: short JSON; the server's own repeat what is wrong."""
    ours: list[dict[str, Any]] = []
    for head, body in re.findall(rb"HTTP/1\.1 (.*?)\r\n\r\n(.*?)(?=HTTP/1\.1 |$)", said, re.DOTALL):
        assert not head.startswith((b"3", b"5")) or head.startswith(UNKNOWN_CODING)
        assert b"Traceback" not in body
        if b"application/json" in head:
            assert len(body) < 1024
            assert SECRET.encode() not in head + body
            ours.append(dict(json.loads(body or b"{}")))
    if OUTCOME in said:
        assert b"POST " in sent
        assert re.search(rb"bearer " + SECRET.encode(), sent, re.IGNORECASE)
    return ours


def may_be_meant(slot: str, sent: bytes, today: str) -> bool:
    """Tell whether the request names this slot; or it may be the newest, where none is named."""
    heads = sent.lower().split(b"\r\n\r\n")[:-1]
    names_one = all(f"\r\n{SLOT_HEADER}:".lower().encode() in head for head in heads)
    return slot[:10].encode() in sent or (not names_one and slot[:10] >= today)


def marks(site: World) -> Counter[str]:
    return Counter(job for (job,) in site.database.query("SELECT job FROM mark"))


def test_spoilt_requests_run_nothing_else_and_leave_nothing(
    site: World, instance: Instance
) -> None:
    random, ran = Random(seed()), Counter[str]()
    (worker,) = instance.workers()
    for _ in range(4):
        for good in GOOD.values():
            assert OUTCOME in exchange(instance.port, good)
    before, begun = held(instance), marks(site)
    today = site.database.value("SELECT (now() AT TIME ZONE 'UTC')::date::text")

    for _ in range(number_of_cases(400)):
        sent = spoil(random.choice(list(GOOD.values())), random)
        for body in check(sent, exchange(instance.port, sent)):
            if body.get("outcome") == "ran":
                assert body["slot"] is None or may_be_meant(body["slot"], sent, today)
                ran[body["job"]] += 1

    assert marks(site) - begun == ran
    assert set(ran) == set(GOOD)
    wait_until(lambda: all(now <= then for now, then in zip(held(instance), before, strict=True)))
    assert instance.workers() == [worker]
    assert site.database.advisory_locks() == 0
    assert not [sign for sign in BROKEN if sign in instance.log.read_text()]
    assert b'"outcome": "ran"' in exchange(instance.port, GOOD["idle"])
