"""Schedulers: they ask for each slot until it is done, some twice, some without patience."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ..support.worlds import SECRET
from .answers import DONE, word_for
from .app import SLOT_HEADER
from .history import Recorder, Slot
from .stage import Stage

LANES = 2
"""Clients of one job, so that its slots contend for its lock."""
PATIENCE = 5.0
HASTY = (0.005, 0.06)
"""Seconds that some hits wait for their answers."""
HASTES, REPEATS = 0.08, 0.15
"""The shares of hits that are hasty, and that are made twice at once."""
PAUSE = (0.01, 0.08)
LATE_EVERY = 0.1
MOST_SECONDS = 300
"""How long a client tries; then the slot is lost."""


class Clients:
    """Every slot of every job is asked for, in order, by the job's clients."""

    def __init__(self, stage: Stage, told: Recorder, seed: int, slots: list[Slot]) -> None:
        self._ports = [instance.port for instance in stage.instances.values()]
        self._history = told
        self._seed = seed
        self._by_job = {
            job: [slot for name, slot in slots if name == job] for job in {job for job, _ in slots}
        }
        self._numbers = itertools.count(1)
        self._finished: list[Slot] = []
        self._repeats = ThreadPoolExecutor(32)
        self.slots_done = threading.Semaphore(0)

    @property
    def done(self) -> int:
        return len(self._finished)

    def work(self) -> None:
        """Return when all is done, or given up."""
        lanes = [
            threading.Thread(target=self._follow, args=[job, slots, f"{job} {lane}"], daemon=True)
            for job in sorted(self._by_job)
            for slots in [iter(self._by_job[job])]
            for lane in range(LANES)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        self._repeats.shutdown()

    def come_late(self, over: threading.Event) -> None:
        """Hit slots that are done, as a scheduler does that never got its answer."""
        chance = random.Random(f"{self._seed} late")
        while not over.wait(LATE_EVERY):
            if self._finished:
                self._hit(*chance.choice(self._finished), chance)

    def _follow(self, job: str, slots: Iterator[str], lane: str) -> None:
        chance = random.Random(f"{self._seed} {lane}")
        for slot in slots:
            if self._pursue(job, slot, chance):
                self._finished.append((job, slot))
            self.slots_done.release()

    def _pursue(self, job: str, slot: str, chance: random.Random) -> bool:
        until = time.monotonic() + MOST_SECONDS
        while time.monotonic() < until:
            if chance.random() < REPEATS:
                self._repeats.submit(self._hit, job, slot, random.Random(chance.random()))
            if self._hit(job, slot, chance) in DONE:
                return True
            time.sleep(chance.uniform(*PAUSE))
        return False

    def _hit(self, job: str, slot: str, chance: random.Random) -> str | None:
        """Ask an instance; return what it answered, if it did."""
        hasty = chance.random() < HASTES
        patience = chance.uniform(*HASTY) if hasty else PATIENCE
        self._history.write("hit", job, slot, detail=str(next(self._numbers)))
        try:
            status, body = _post(chance.choice(self._ports), job, slot, patience)
        except (OSError, http.client.HTTPException) as error:
            why = "hasty" if hasty and isinstance(error, TimeoutError) else type(error).__name__
            self._history.write("gave up", job, slot, detail=why)
            return None
        detail = word_for(status, body)
        self._history.write("answer", job, slot, body.get("run", ""), detail, status)
        return detail


def _post(port: int, job: str, slot: str, patience: float) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
    headers = {"Authorization": f"Bearer {SECRET}", SLOT_HEADER: slot}
    try:
        connection.request("POST", f"/api/cron/{job}", headers=headers)
        response = connection.getresponse()
        return response.status, _read(response.read())
    finally:
        connection.close()


def _read(text: bytes) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(text)
    except ValueError:
        return {"error": "not JSON"}
    return found
