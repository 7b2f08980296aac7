"""All at once for a while: clocks are killed, the pooler restarts, instances are hit at random.

CRONLOCK_SOAK_SECONDS says for how long; nothing is lost, and nothing is done twice.
"""

from __future__ import annotations

import http.client
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta

import pytest

from ..support.clock_processes import TRACEBACK, Stage
from ..support.databases import Database, Server
from ..support.instances import Instance
from ..support.logged import Process
from ..support.pgbouncer import PgBouncer, pgbouncer_before
from ..support.processes import wait_until
from ..support.worlds import World

SECONDS = float(os.environ.get("CRONLOCK_SOAK_SECONDS", "15"))
KILL_EVERY = 4.0
CATCH_UP = 120
"""Seconds that the clocks may need at the end, on a busy machine."""
INTERVALS = {f"job-{number:02}": 1 + number % 10 for number in range(100)}
HOW = {"catch_up": "all", "max_catch_up": 300, "timeout": "20s", "seconds": 0.05}
JOBS = {job: {**HOW, "every": f"{seconds}s"} for job, seconds in INTERVALS.items()}
STATUSES = {200, 500, 503}
"""Ran or skipped; broken off in mid-run; no database just now."""


class Clocks:
    """Two clocks, of which one is killed now and then, and another takes its place."""

    def __init__(self, stage: Stage, url: str) -> None:
        self._stage, self._url = stage, url
        self.lives = [ExitStack(), ExitStack()]
        self.processes: list[Process] = [self._start(0), self._start(1)]
        self.said: list[str] = []
        self.kills = 0

    def _start(self, place: int) -> Process:
        clock = self._stage.clock(JOBS, url=self._url, DYNO=f"clock.{place}")
        return self.lives[place].enter_context(clock)

    def kill_one(self) -> None:
        place = self.kills % 2
        self.processes[place].end(signal.SIGKILL)
        self._bury(place)
        self.processes[place] = self._start(place)
        self.kills += 1

    def _bury(self, place: int) -> None:
        self.said.append(self.processes[place].said())
        self.lives[place].close()

    def end(self) -> list[int]:
        """Let both come to their ends, and return their statuses."""
        statuses = [process.end() for process in self.processes]
        for place in (0, 1):
            self._bury(place)
        return statuses

    def close(self) -> None:
        for life in self.lives:
            life.close()


@contextmanager
def hit_at_random(instances: list[Instance]) -> Iterator[Counter[int]]:
    """Hit any job of any instance, again and again, until the end of the block."""
    statuses: Counter[int] = Counter()
    over = threading.Event()

    def hit() -> None:
        while not over.wait(random.uniform(0, 0.2)):
            try:
                answer = random.choice(instances).post(random.choice(list(JOBS)))
            except (OSError, http.client.HTTPException):
                statuses[0] += 1
            else:
                statuses[answer.status] += 1

    threads = [threading.Thread(target=hit) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def stage(database: Database, world: World) -> Stage:
    return Stage(database)


@pytest.fixture
def pooler(postgres: Server) -> Iterator[PgBouncer]:
    with pgbouncer_before(postgres, default_pool_size=8) as made:
        yield made


@pytest.fixture
def clocks(stage: Stage, pooler: PgBouncer) -> Iterator[Clocks]:
    made = Clocks(stage, pooler.url(stage.database))
    yield made
    made.close()


def test_a_hundred_jobs_run_each_slot_once_while_clocks_are_killed_and_the_pooler_restarts(
    stage: Stage, pooler: PgBouncer, clocks: Clocks, capsys: pytest.CaptureFixture[str]
) -> None:
    url = pooler.url(stage.database)
    began = stage.now()
    with (
        stage.web(JOBS, url=url, name="web.1") as one,
        stage.web(JOBS, url=url, name="web.2") as two,
    ):
        with hit_at_random([one, two]) as statuses:
            restarts = trouble(pooler, clocks)
        until = stage.now()
        wait_until(lambda: behind(stage, until) == [], CATCH_UP)
        caught_up = stage.now() - until
        assert clocks.end() == [0, 0]
        served = one.log.read_text() + two.log.read_text()

    with capsys.disabled():
        attempts = stage.database.value("SELECT count(*) FROM cronlock_attempt")
        begun = stage.database.value("SELECT count(*) FROM begun")
        sys.stdout.write(
            f"\n{until - began} with {clocks.kills} kills, {restarts} restarts, hits "
            f"{dict(statuses)}; caught up in {caught_up}; {sum(map(len, effects(stage).values()))} "
            f"slots ran, {begun} begun, {attempts} failed attempts\n"
        )
    for said in [*clocks.said, served]:
        assert TRACEBACK not in said, said[said.index(TRACEBACK) - 2000 :][:6000]
    assert restarts == 2
    assert clocks.kills > SECONDS / KILL_EVERY / 2
    assert set(statuses) <= STATUSES
    assert statuses[200] > 0
    assert ledger(stage) == effects(stage)
    assert ledger(stage, "missed") == {}
    for job, slots in effects(stage).items():
        every = timedelta(seconds=INTERVALS[job])
        assert slots[0] - began <= every
        assert slots == [slots[0] + n * every for n in range(len(slots))], job
    assert stage.database.advisory_locks() == 0


def trouble(pooler: PgBouncer, clocks: Clocks) -> int:
    """Kill a clock every few seconds, and restart the pooler after a third and two thirds.

    Return how often it was restarted.
    """
    begun, restarts = time.monotonic(), 0
    for number in range(1, int(SECONDS / KILL_EVERY) + 1):
        time.sleep(max(0, begun + number * KILL_EVERY - time.monotonic()))
        wait_for_a_busy_moment()
        clocks.kill_one()
        gone = (time.monotonic() - begun) / SECONDS
        if restarts < min(2, int(gone * 3)):
            wait_for_a_busy_moment()
            pooler.restart(0.5)
            restarts += 1
    return restarts


def wait_for_a_busy_moment() -> None:
    """Wait until some time in the fifth of a second after a full one, when many slots begin."""
    time.sleep(1 - time.time() % 1 + random.uniform(0, 0.2))


def effects(stage: Stage) -> dict[str, list[datetime]]:
    """Return the slots that took effect, by job, oldest first."""
    return by_job(stage, "SELECT job, slot FROM effect ORDER BY job, slot")


def ledger(stage: Stage, state: str = "done") -> dict[str, list[datetime]]:
    """Return the slots in a state, by job, oldest first."""
    return by_job(
        stage,
        "SELECT job, scheduled_at FROM cronlock_run WHERE state = %s ORDER BY job, scheduled_at",
        state,
    )


def by_job(stage: Stage, statement: str, *values: str) -> dict[str, list[datetime]]:
    found: dict[str, list[datetime]] = {}
    for job, slot in stage.database.query(statement, *values):
        found.setdefault(job, []).append(slot)
    return found


def behind(stage: Stage, until: datetime) -> list[str]:
    """Return the jobs of whose slots, from their first to *until*, some have not run."""
    found = effects(stage)
    late = []
    for job, seconds in INTERVALS.items():
        ran = [slot for slot in found.get(job, []) if slot <= until]
        span = until.timestamp() // seconds - ran[0].timestamp() // seconds if ran else 1
        if len(set(ran)) <= span:
            late.append(job)
    return late
