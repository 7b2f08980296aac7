"""Cut a run off at each of its messages, and see that what was told of it is true."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import psycopg
import pytest

from .clocks import engine_of
from .databases import ADVISORY_LOCKS, Database
from .processes import wait_until
from .wire import Wire
from .wire_figures import adding_nothing, open_here
from .wire_line import Cut
from .wire_plays import BACKENDS, Play, Told
from .wire_routes import wired
from .wire_tally import Place, Tally
from .worlds import World, world_on

UNFINISHED = f"""
SELECT (SELECT count(*) FROM {ADVISORY_LOCKS})
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
  AND (name LIKE '%timeout' OR name LIKE 'default_transaction_%'
       OR name IN ('client_connection_check_interval', 'DateStyle', 'application_name'))
"""
FRESH = (False, None, 5)
"""A new connection of psycopg's: autocommit, isolation level and prepare threshold."""


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
                assert play.tell() is play.ends
                tallies.append(self.wire.tally)
            self._act(play)
        return tallies[-1]

    def places(self, play: Play, *about: bytes) -> list[Place]:
        """Return each message of a clean run; or those around which it says what is *about*."""
        tally = self.count(play)
        assert tally.frontend, "no message comes by this wire"
        assert tally.backend
        places = tally.places(*about)
        assert places, f"no message says {about}"
        return places

    def cut_everywhere(
        self, play: Play, *cuts: Cut, about: Iterable[bytes] = (), refuse: bool = False
    ) -> Counter[Told]:
        """Cut a run at each of its places, by each of *cuts*; return what was told.

        Nothing that the process or the server has open may have come of it.
        """
        places = self.places(play, *about)
        with adding_nothing(open_here):
            return self.cut_at(play, product(places, cuts), refuse)

    def cut_at(
        self, play: Play, places: Iterable[tuple[Place, Cut]], refuse: bool = False
    ) -> Counter[Told]:
        """Cut a run at each of *places*; the server is to have as many backends as before."""
        told: Counter[Told] = Counter()
        with adding_nothing(lambda: play.count(BACKENDS)):
            for place, cut in places:
                try:
                    told[self.cut(play, place, cut, refuse)] += 1
                except BaseException as error:
                    side, number = place
                    error.add_note(f"{play.name}: {cut} at the {side.value}'s {number}. message")
                    raise
        return told

    def cut(self, play: Play, place: Place, cut: Cut, refuse: bool = False) -> Told:
        """Cut one run at one message, and then make it once more on a whole wire."""
        with play.set():
            before = play.kept()
            self.wire.cut_message(*place, cut, refuse)
            told = play.tell() if cut is not Cut.SILENCE else self._tell_at_last(play)
            assert self.wire.was_cut.wait(20), "the run never came to that message"
            self.wire.mend()
        self._see(play, told, before)
        if self.wire.whole:
            self._see_connection()
        assert refuse or told is not Told.UNKNOWN or not play.settles
        assert told is play.ends or (told is not Told.KEPT and cut is not Cut.STALL)
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
        self._see_connection()

    def _see(self, play: Play, told: Told, before: int) -> None:
        """See that *told* is true of an effect that was there *before*, and nothing is left."""
        assert engine_of(self.world).pool.checkedout() == 0  # type: ignore[attr-defined]
        wait_until(lambda: play.count(UNFINISHED) == 0)
        play.check_told(told, before)
        play.check()

    def _see_connection(self) -> None:
        """See that the connection in the pool is, to server and driver, as a new one."""
        with engine_of(self.world).connect() as connection:
            driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
            assert driver.execute(CHANGED).fetchall() == []
            settings = driver.autocommit, driver.isolation_level, driver.prepare_threshold
            assert settings == FRESH


@contextmanager
def stage(way: str, database: Database, connections: int = 1) -> Iterator[Stage]:
    """Yield a stage with so many *connections* to *database*, that *way*."""
    pool = {"pool_size": connections, "max_overflow": 0, "pool_timeout": 5}
    with ExitStack() as stack:
        wire, url = stack.enter_context(wired(way, database))
        world = stack.enter_context(world_on(database, url=url, engine_options=pool))
        yield Stage(world, wire, way)


def report(capsys: pytest.CaptureFixture[str], what: str, told: Counter[Told]) -> None:
    """Print how many runs were cut off, and what was told of them."""
    words = ", ".join(f"{told[each]} {each.name.lower()}" for each in Told)
    with capsys.disabled():
        sys.stdout.write(f"\n{what}: {told.total()} cuts: {words}")
