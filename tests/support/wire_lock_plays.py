"""Work under a lock that is cut off."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg

from flask_cronlock.locks import LockName, lock_text

from .databases import ADVISORY_LOCKS
from .locking import locked
from .wire_plays import Planned, Play, Told

TAKE = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
WAITS = f"SELECT count(*) FROM {ADVISORY_LOCKS} AND NOT granted"


class WithLock(Play):
    name = "with_lock"
    job = "with-lock"
    once = False

    @property
    def lock(self) -> LockName:
        return self.job, self.number

    def act(self) -> Any:
        return locked(self.world, self.lock, lambda _: self.work(), **self.how)

    def check(self) -> None:
        """There is no ledger of locks."""


class WithLockSkipped(WithLock):
    """Another session has the lock, and lets it go for the clean retry."""

    name = "with_lock that is skipped"
    job = "with-lock-skipped"
    ends = Told.NOTHING

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        with self.world.database.connect() as other:
            other.execute(TAKE, [lock_text("", self.lock)])
            yield
            other.execute("SELECT pg_advisory_unlock_all()")


class WithLockWaiting(WithLock):
    """Another session has the lock, and lets it go as soon as somebody waits for it."""

    name = "with_lock that waits"
    job = "with-lock-waiting"
    how: ClassVar = {"wait": "10s"}

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        over = threading.Event()
        with self.world.database.connect() as other, ThreadPoolExecutor(1) as pool:
            other.execute(TAKE, [lock_text("", self.lock)])
            letting_go = pool.submit(self._let_go, other, over)
            try:
                yield
            finally:
                over.set()
            letting_go.result(20)

    def _let_go(self, other: psycopg.Connection[Any], over: threading.Event) -> None:
        while not over.is_set() and other.execute(WAITS).fetchone() == (0,):
            time.sleep(0.002)
        other.execute("SELECT pg_advisory_unlock_all()")


class WithLockRaising(WithLock):
    """The work raises, but not in the clean retry."""

    name = "with_lock whose work raises"
    job = "with-lock-raising"
    ends = Told.NOTHING
    fails = False

    @contextmanager
    def set(self) -> Iterator[None]:
        self.number += 1
        self.fails = True
        yield
        self.fails = False

    def work(self) -> None:
        super().work()
        self.world.db.session.commit()  # Of a savepoint; the lock's own transaction is rolled back.
        if self.fails:
            raise Planned

    def tell(self) -> Told:
        try:
            return super().tell()
        except Planned:
            return Told.NOTHING
