"""Cut a run off at each of its messages, and see that what was told of it is true."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product

import pytest

from .clocks import engine_of
from .databases import Database
from .processes import wait_until
from .wire import Cut, Tally, Wire
from .wire_messages import Side
from .wire_plays import Play, Told
from .wire_routes import wired
from .worlds import World, world_on

ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}
UNFINISHED = """
SELECT (SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
     + (SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND backend_type = 'client backend'
          AND (state <> 'idle' OR application_name LIKE 'cronlock%'))
"""
"""How many locks are held; and how many backends are at work, wait in a transaction, or bear the
name that a run gave them."""
CHANGED = """
SELECT name, setting FROM pg_settings
WHERE setting IS DISTINCT FROM reset_val
  AND (name LIKE '%timeout' OR name IN ('client_connection_check_interval', 'DateStyle'))
"""


@dataclass(frozen=True)
class Stage:
    """A world behind a wire, on which runs are cut off."""

    world: World
    wire: Wire
    way: str

    def count(self, play: Play) -> Tally:
        """Make clean runs until two in turn take as many messages, and return how many."""
        tallies: list[Tally] = []
        while len(tallies) < 2 or tallies[-1] != tallies[-2]:
            assert len(tallies) < 10, tallies
            with play.set():
                self.wire.count()
                play.tell()
                tallies.append(replace(self.wire.tally))
            self._act(play)
        return tallies[-1]

    def places(self, play: Play) -> list[tuple[Side, int]]:
        """Return each message of a clean run."""
        tally = self.count(play)
        assert tally.frontend, "no message comes by this wire"
        assert tally.backend
        counts = {Side.FRONTEND: tally.frontend, Side.BACKEND: tally.backend}
        return [(side, number + 1) for side in counts for number in range(counts[side])]

    def cut_everywhere(self, play: Play, *cuts: Cut, refuse: bool = False) -> Counter[Told]:
        """Cut a run at each message of both sides, by each of *cuts*; return what was told."""
        return self.cut_at(play, product(self.places(play), cuts), refuse)

    def cut_at(
        self,
        play: Play,
        places: Iterable[tuple[tuple[Side, int], Cut]],
        refuse: bool = False,
    ) -> Counter[Told]:
        told: Counter[Told] = Counter()
        for (side, number), cut in places:
            try:
                told[self.cut(play, side, number, cut, refuse)] += 1
            except BaseException as error:
                error.add_note(f"{play.name}: {cut} at the {side.value}'s {number}. message")
                raise
        return told

    def cut(self, play: Play, side: Side, number: int, cut: Cut, refuse: bool = False) -> Told:
        """Cut one run at one message, and then make it once more on a whole wire."""
        with play.set():
            before = play.kept()
            self.wire.cut_message(side, number, cut, refuse)
            told = play.tell() if cut is not Cut.SILENCE else self._tell_at_last(play)
            assert self.wire.was_cut.wait(20), "the run never came to that message"
            self.wire.mend()
        self._see(play, told, before)
        assert refuse or told is not Told.UNKNOWN or not play.settles
        assert told is play.ends or cut is not Cut.STALL
        self._act(play)
        return told

    def _tell_at_last(self, play: Play) -> Told:
        """Let *play* wait in vain until the server has freed the lock by itself, and then break."""
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(play.tell)
            try:
                assert self.wire.was_cut.wait(20), "the run never came to that message"
                wait_until(lambda: self.world.database.advisory_locks() == 0)
            finally:
                self.wire.hang_up()
            return told.result(30)

    def _act(self, play: Play) -> None:
        """Make a clean run, after which the effect is there for good."""
        before = play.kept()
        told = play.tell()
        self._see(play, told, before)
        if play.once:
            assert play.kept() == 1
        else:
            assert play.kept() == before + 1
        with engine_of(self.world).connect() as connection:
            assert connection.exec_driver_sql(CHANGED).all() == []

    def _see(self, play: Play, told: Told, before: int) -> None:
        """See that *told* is true of an effect that was there *before*, and nothing is left."""
        assert engine_of(self.world).pool.checkedout() == 0  # type: ignore[attr-defined]
        wait_until(lambda: play.count(UNFINISHED) == 0)
        play.check_told(told, before)
        play.check()


@contextmanager
def stage(way: str, database: Database) -> Iterator[Stage]:
    """Yield a stage with one connection to *database*, that *way*."""
    with ExitStack() as stack:
        wire, url = stack.enter_context(wired(way, database))
        world = stack.enter_context(world_on(database, url=url, engine_options=ONE))
        yield Stage(world, wire, way)


def report(capsys: pytest.CaptureFixture[str], what: str, told: Counter[Told]) -> None:
    """Print how many runs were cut off, and what was told of them."""
    words = ", ".join(f"{told[each]} {each.name.lower()}" for each in Told)
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {told.total()} cuts: {words}")
