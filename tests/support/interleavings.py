"""Wishes for one job whose runs go by steps, and what must hold after every order of them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flask_cronlock import Outcome, planning, runner

from .databases import ADVISORY_LOCKS, Database
from .orders import Choose, play
from .ownlocks import LOOK_HERE_FIRST
from .stepping import TRIES_INSIDE_A_GATE, Runner, Stage, SteppedConnection, SteppedCursor
from .worlds import World, world_on

EPOCH, INTERVAL = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1000)
NEWEST = EPOCH + (datetime.now(UTC) - EPOCH) // INTERVAL * INTERVAL
OLDER = NEWEST - INTERVAL
MOST = 3
"""Runs at once."""
IN_THE_JOB = (
    *("SAVEPOINT", "job", "RELEASE", "ROLLBACK TO", "patience"),
    *("broken", "there?", "attempt", "proof", "standing"),
)
"""The steps that matter to no other run: those of the job's session, which go to a row and a
savepoint of its own, how long it waits for locks, all but the first and last of the record of a
failure, and what is read of a slot that another one has taken for good."""
LEFT = f"""
WITH notes AS (DELETE FROM note RETURNING text),
     runs AS (DELETE FROM cronlock_run RETURNING id, slot_key, state),
     attempts AS (DELETE FROM cronlock_attempt RETURNING id)
SELECT (SELECT array_agg(text) FROM notes),
       (SELECT array_agg(ARRAY[id::text, slot_key, state]) FROM runs),
       (SELECT array_agg(id::text) FROM attempts),
       (SELECT count(*) FROM {ADVISORY_LOCKS})
"""


def key_of(slot: datetime) -> str:
    return f"{slot:%Y-%m-%dT%H:%MZ}"


@dataclass(frozen=True)
class Wish:
    """A wish for the job to run once."""

    slot: datetime = NEWEST
    release: str = ""
    """Another one computes another lock key."""
    renamed: bool = False
    """By the release in which the job has a new name and an old one."""
    forced: bool = False
    fails: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return ("digest", "daily-digest") if self.renamed else ("digest",)

    @property
    def keys(self) -> set[str]:
        return {self.release + name for name in self.names}

    @property
    def claims(self) -> str | None:
        """The key of the slot that it takes."""
        return None if self.forced else key_of(self.slot)


@dataclass
class Play:
    """What became of some wishes in one order."""

    wishes: dict[str, Wish]
    outcomes: dict[str, Outcome]
    stage: Stage
    bodies: list[tuple[str, str]]
    known: bool
    """Whether the older slot counts as missed where nobody runs it."""
    left: tuple[Any, ...]

    def __str__(self) -> str:
        told = {name: type(outcome).__name__ for name, outcome in self.outcomes.items()}
        return f"{self.stage}\n{self.wishes}\n{told}\n{self.left}"


class Theatre:
    """One database, and two releases of one app on it, whose runs go by steps."""

    def __init__(self, old: World, new: World) -> None:
        self.old, self.new = old, new
        self.wishes: dict[str, Wish] = {}
        self.bodies: list[tuple[str, str]] = []
        self.split = self.knows = False
        self.together: Collection[str] = ()
        self.orders = 0
        """How many were played."""
        for world, name, before in ((old, "digest", []), (new, "daily-digest", ["digest"])):
            how: dict[str, Any] = {"every": INTERVAL, "max_lateness": "3000d", "timeout": "600s"}
            world.cron.job(name, previous_names=before, **how)(lambda world=world: self._job(world))

    def _job(self, world: World) -> None:
        name = self._running()
        self.bodies.append((name, "begin"))
        world.note(name)
        self.bodies.append((name, "end"))
        if self.wishes[name].fails:
            raise ValueError("as asked")

    @contextmanager
    def gates(self) -> Iterator[None]:
        """Let the statement that tries the lock be two steps: its snapshot, and the try."""
        self.split = True
        self.old.probe.execute(TRIES_INSIDE_A_GATE)
        yield
        self.old.probe.execute("DROP FUNCTION public.pg_try_advisory_xact_lock")
        self.split = False

    def know_the_job(self) -> None:
        """Let the job be known for so long that its older slot can be missed."""
        self.knows = True
        self.old.probe.execute(
            "INSERT INTO cronlock_job (namespace, job, known_since) VALUES ('', 'digest', %s)",
            [OLDER - timedelta(days=1)],
        )

    def forget_the_job(self) -> None:
        self.knows = False
        self.old.probe.execute("DELETE FROM cronlock_job")

    def _running(self) -> str:
        """Return which run's thread this is."""
        current = Runner.current()
        assert current is not None
        return current.name

    def lock_texts(self, namespace: str, names: Sequence[str]) -> list[str]:
        """Return what the release of the run that asks takes for its locks' texts."""
        return [self.wishes[self._running()].release + name for name in names]

    def play(self, wishes: Sequence[Wish], choose: Choose) -> Play:
        """Run all *wishes* once, their steps in the order that *choose* makes."""
        self.orders += 1
        self.wishes = {"abc"[place]: wish for place, wish in enumerate(wishes)}
        self.bodies = []
        runners = [Runner(name, self.together) for name in self.wishes]
        with ThreadPoolExecutor(len(runners)) as pool:
            try:
                for one in runners:
                    one.start(pool, lambda wish=self.wishes[one.name]: self._run(wish))
                stage = Stage(self.old.probe, runners, self.split)
                play(stage, choose)
            finally:
                for one in runners:
                    one.let_go()
                self.old.probe.execute("SELECT pg_advisory_unlock_all()")
        outcomes = {one.name: one.future.result() for one in runners}
        left = self.old.probe.execute(LEFT).fetchone()
        assert left is not None
        return Play(self.wishes, outcomes, stage, self.bodies, self.knows, left)

    def _run(self, wish: Wish) -> Outcome:
        world = self.new if wish.renamed else self.old
        return world.run(wish.names[-1], slot=wish.slot, force=wish.forced)


@contextmanager
def theatre_on(database: Database) -> Iterator[Theatre]:
    """Yield a theatre in which no wait for a claim runs out: an order decides, and no clock."""
    with ExitStack() as stack:
        worlds = [stack.enter_context(_stepped_world(database)) for _ in range(2)]
        theatre = Theatre(*worlds)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(planning, "LOCK_WAIT", timedelta(minutes=5))
        patch.setattr(runner, "lock_texts", theatre.lock_texts)
        patch.setattr(logging.getLogger("flask_cronlock"), "disabled", True)
        yield theatre


@contextmanager
def _stepped_world(database: Database) -> Iterator[World]:
    """Yield a world whose connections are open, so that no run's first steps go into that."""

    def connect() -> SteppedConnection:
        how: dict[str, Any] = {"cursor_factory": SteppedCursor, **LOOK_HERE_FIRST["connect_args"]}
        return SteppedConnection.connect(database.conninfo, **how)

    options = {"creator": connect, "pool_size": MOST, "max_overflow": 0}
    with world_on(database, engine_options=options) as world, world.app.app_context():
        with ExitStack() as opened:
            for _ in range(MOST):
                opened.enter_context(world.db.engine.connect())
        yield world
