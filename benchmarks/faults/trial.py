"""One tool through the plan, and what is left of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.checker import Effect, Verdict, check
from tests.chaos.history import Recorder, now, read
from tests.chaos.work import EFFECTS
from tests.support.databases import Database
from tests.support.pgbouncer import PgBouncer

from . import by_cronlock, by_lease
from .crew import Crew, Worker
from .hit import INTERVAL, Place, numbered
from .plan import WORKERS, Action, Plan
from .stage import terminate_a_backend
from .tools import Entry

HEAD_START = 0.5
LOOK_EVERY = 0.5
"""Seconds from one look at the open slots to the next."""
RETRY_AFTER = 2.0
"""Seconds after which a slot without an effect is asked for again, and then again."""
PATIENCE = 20.0
"""Seconds without any effect, after the last action, until what is open is given up."""


@dataclass(frozen=True)
class Result:
    """What became of one tool."""

    verdict: Verdict
    unasked: int
    """How many of the duplicates are of slots that were asked for but once."""
    false_answers: int
    """Answers that the database does not bear out."""
    faults: int
    seconds: float


class Trial:
    """A tool's workers, its database and the plan."""

    def __init__(self, entry: Entry, plan: Plan, database: Database, pooler: PgBouncer) -> None:
        self.entry, self.plan, self.database, self.pooler = entry, plan, database, pooler
        # Nobody asks a tool that keeps the time, but for what it has left open.
        self.to_repeat = set[int]() if entry.keeps_time else set(plan.repeated)

    def run(self, redis: str, folder: Path) -> Result:
        """Play it all; the history and the workers' log stay in *folder*."""
        started = now()
        self._make_tables()
        self.history = folder / "history"
        self.history.mkdir()
        self.recorder = Recorder(self.history, "stage")
        url = self.pooler.url(self.database)
        place = Place(self.entry.key, "", url, redis, str(self.history), self.plan.slots)
        with Crew(place, WORKERS, folder / "log") as self.crew:
            self.crew.begin(HEAD_START)
            self.begun = self.looked = now() + HEAD_START
            self.asked = {slot: self.begun + slot * INTERVAL for slot in range(self.plan.slots)}
            self._play()
            self.crew.end()
        self.recorder.close()
        return self._judge(now() - started)

    def _make_tables(self) -> None:
        for table in (EFFECTS, by_lease.TABLE):
            self.database.query(table)
        by_cronlock.create_tables(self.database.url)

    def _play(self) -> None:
        for action in self.plan.actions:
            self._wait_until(self.begun + action.at)
            self._act(action)
        left, moved = self.plan.slots, now()
        while (still := len(self._open())) and now() < moved + PATIENCE:
            if still < left:
                left, moved = still, now()
            self._wait_until(now() + LOOK_EVERY)
        self._ask_again()

    def _wait_until(self, moment: float) -> None:
        while True:
            self.crew.thaw_by(now())
            if now() - self.looked > LOOK_EVERY:
                self._ask_again()
            if (left := moment - now()) <= 0:
                return
            time.sleep(min(left, 0.05))

    def _act(self, action: Action) -> None:
        if action.kind == "hit":
            if not self.entry.keeps_time:
                self.crew.workers[action.worker].hit(action.slot)
            return
        victim = self._victim(action)
        if victim is None:
            return
        self.recorder.write("fault", detail=f"{action.kind} {victim.name}")
        match action.kind:
            case "kill":
                victim.kill()
                victim.start()
            case "freeze":
                victim.freeze(now() + action.seconds)
            case "terminate":
                terminate_a_backend(self.database)
            case "restart pooler":
                self.pooler.restart()

    def _victim(self, action: Action) -> Worker | None:
        """Return a worker that is in a body, else the one of the plan, else any that is able.

        Nobody is killed or frozen who is the last one: the tool is tried, not the machine's speed.
        """
        at_work = {}
        for event in read(self.history):
            if event.kind in ("begin", "end"):
                at_work[event.who] = event.kind == "begin"
        able = self.crew.able()
        if len(able) < 2 and action.kind in ("kill", "freeze"):
            return None
        planned = f"w{action.worker}"
        able.sort(key=lambda one: (not at_work.get(one.name), one.place.who != planned))
        return able[0] if able else None

    def _ask_again(self) -> None:
        """Ask for what is open, and once more for what was to be repeated and has ended."""
        self.looked = now()
        opened = self._open()
        if able := self.crew.able():
            for slot in [*self._overdue(opened), *self._to_repeat(opened)]:
                self.asked[slot] = self.looked
                able[slot % len(able)].hit(slot)

    def _overdue(self, opened: list[int]) -> list[int]:
        """Return one slot of each job: the oldest that was not asked for just now."""
        chosen: dict[str, int] = {}
        for slot in opened:
            if self.looked - self.asked[slot] > RETRY_AFTER:
                chosen.setdefault(numbered(slot)[0], slot)
        return list(chosen.values())

    def _to_repeat(self, opened: list[int]) -> list[int]:
        ended = self.to_repeat.difference(opened)
        self.to_repeat -= ended
        return sorted(ended)

    def _open(self) -> list[int]:
        done = {(job, slot) for job, slot, _ in self._effects()}
        return [slot for slot in range(self.plan.slots) if numbered(slot) not in done]

    def _effects(self) -> list[Effect]:
        return [(job, slot, run) for job, slot, run in self.database.query("TABLE effect")]

    def _judge(self, seconds: float) -> Result:
        events, effects = read(self.history), self._effects()
        expected = [numbered(slot) for slot in range(self.plan.slots)]
        verdict = check(events, effects, expected, PATIENCE)
        repeated = {numbered(slot) for slot in self.plan.repeated if not self.entry.keeps_time}
        # A second run after "ran" is counted as a duplicate: here it is only asked who told lies.
        told = [event for event in events if event.kind in ("answer", "end")]
        return Result(
            verdict,
            unasked=len([slot for slot in verdict.duplicates if slot not in repeated]),
            false_answers=len(check(told, effects, expected, PATIENCE).contradictions),
            faults=sum(event.kind == "fault" for event in events),
            seconds=seconds,
        )
