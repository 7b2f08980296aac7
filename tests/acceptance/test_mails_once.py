"""Two web instances, two workers, a crowd of hits for each slot, and kills: each mail once."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ..support.databases import Database
from ..support.instances import Instance, at_once, gunicorn
from ..support.logged import Process
from ..support.mail_app import TABLES
from ..support.named import HEADER
from ..support.processes import wait_until
from ..support.queue_workers import Workshop
from ..support.worlds import SECRET

READERS = 60
SLOTS = 5
HITS = 60
APP = "tests.support.mail_app"
TAKEN_CARE_OF = ("ran", "already ran")


@dataclass
class Scene:
    """All the processes, and what is done to them."""

    stack: ExitStack
    workshop: Workshop
    url: str
    webs: list[Instance]
    workers: list[Process]

    def start_worker(self) -> Process:
        started = self.workshop.worker(url=self.url, MAIL_SECONDS="0.05")
        return self.stack.enter_context(started)

    def kill_web_workers(self) -> None:
        """Kill all that serves of one instance; its master starts others."""
        for pid in self.webs[1].workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_worker(self) -> None:
        """Kill a worker that is in mid-delivery; another host takes its place."""
        self.wait_for_deliveries()
        self.workers[0].end(signal.SIGKILL)
        self.workers[0] = self.start_worker()

    def kill_stopping_worker(self) -> None:
        """Let a worker stop, and kill it before it has."""
        self.wait_for_deliveries()
        self.workers[1].send(signal.SIGTERM)
        self.workers[1].wait_for("The worker stops")
        self.workers[1].end(signal.SIGKILL)
        self.workers[1] = self.start_worker()

    def wait_for_deliveries(self) -> None:
        before = self.sent()
        wait_until(lambda: self.sent() > before, 60)

    def sent(self) -> int:
        return int(self.workshop.database.value("SELECT count(*) FROM mail"))

    def hit(self, web: Instance, slot: datetime) -> str:
        """Do what a scheduler does; return what it was told."""
        headers = {"Authorization": f"Bearer {SECRET}", HEADER: slot.isoformat()}
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
        try:
            connection.request("POST", "/api/cron/digest", headers=headers)
            body: dict[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return "no answer"
        finally:
            connection.close()
        return str(body.get("reason") or body.get("error") or body["outcome"])

    def hit_until_taken_care_of(self, slot: datetime) -> str:
        """Retry as a scheduler does that does not give up."""
        for _ in range(120):
            told = self.hit(random.choice(self.webs), slot)
            if told in TAKEN_CARE_OF:
                return told
            time.sleep(0.25)
        raise AssertionError(f"nobody took care of {slot}: {told}")


@pytest.fixture
def scene(database: Database, route: str) -> Iterator[Scene]:
    workshop = Workshop(database, APP)
    workshop.set_up()
    database.query("CREATE TABLE reader (id int PRIMARY KEY, last_slot timestamptz)")
    database.query(TABLES.format(readers=READERS))
    with ExitStack() as stack:
        target = f"{APP}:app"
        webs = [
            stack.enter_context(gunicorn(database, url=route, name=name, target=target))
            for name in ("web.1", "web.2")
        ]
        made = Scene(stack, workshop, route, webs, [])
        made.workers += [made.start_worker(), made.start_worker()]
        yield made


def crowd(scene: Scene, slot: datetime, meanwhile: Callable[[], None]) -> Counter[str]:
    """Hit both instances from many places at once; return how often they were told what."""

    def disturb() -> str:
        time.sleep(0.2)
        meanwhile()
        return ""

    def hit_of(number: int) -> Callable[[], str]:
        return lambda: scene.hit(scene.webs[number % 2], slot)

    *told, _ = at_once([*(hit_of(number) for number in range(HITS)), disturb])
    return Counter(told)


def minutes(count: int) -> Sequence[datetime]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    return [now - timedelta(minutes=count - number) for number in range(count)]


def test_every_reader_gets_one_mail_a_slot_whatever_is_killed(scene: Scene) -> None:
    disturbances = [
        lambda: None,
        scene.kill_web_workers,
        scene.kill_worker,
        scene.kill_web_workers,
        scene.kill_stopping_worker,
    ]
    ran: Counter[str] = Counter()
    for slot, disturb in zip(minutes(SLOTS), disturbances, strict=True):
        told = crowd(scene, slot, disturb)
        assert told["ran"] <= 1
        told[scene.hit_until_taken_care_of(slot)] += 1
        ran += told
    scene.workshop.wait_until_empty(90)

    database = scene.workshop.database
    wanted = READERS * SLOTS
    assert database.query("SELECT state, count(*) FROM cronlock_run GROUP BY state") == [
        ("done", SLOTS)
    ]
    mails = database.query(
        "SELECT reader, slot, count(DISTINCT message_id) FROM mail GROUP BY 1, 2"
    )
    assert len(mails) == wanted
    assert {count for _, _, count in mails} == {1}
    assert database.value("SELECT count(DISTINCT message_id) FROM mail") == wanted
    read = database.query("SELECT reader, slot, count(*) FROM read GROUP BY 1, 2")
    assert (len(read), {count for _, _, count in read}) == (wanted, {1})
    states = database.query("SELECT task, state, count(*) FROM cronlock_item GROUP BY 1, 2")
    assert sorted(states) == [("note-read", "done", wanted), ("send-mail", "done", wanted)]
