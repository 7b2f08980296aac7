"""Which slots are to be fired now: the agenda, put to the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from .agenda import Agenda, Entry
from .dues import Due, Dues
from .exceptions import BrokenSlot, CronLockError
from .holders import all_holders
from .instance import with_pid
from .jobs import CatchUp
from .limits import SHORT_TIMEOUT
from .queue.requests import Queued
from .results import Failed, Outcome, Ran, Reason, Skipped
from .schedule import Slot
from .state import AppState
from .transaction import GuardedTransaction

LOOK = 30.0
"""Seconds after which a slot that cannot run yet is looked at again: its job may be paused."""
RECHECK = 4.5
"""Seconds after which a slot that runs elsewhere, or could not begin, is looked at again."""
AGAIN = 1.0
"""Seconds after which what failed is tried again at the earliest."""
FAR = timedelta(minutes=1)
"""A clock that is further than this from where the agenda was read has stood, or was set."""
MOST_OF_ONE, MOST_ASKED = 20, 1_000
"""So many slots of one job, and of all, are asked for in one look."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A slot that a clock is to run now."""

    entry: Entry
    slot: Slot
    late: timedelta
    """How long after its time it was looked at, by the database's clock."""
    looked_at: float

    def late_ms(self, now: float) -> int:
        """Return how late it is *now*, in milliseconds."""
        return round((self.late.total_seconds() + now - self.looked_at) * 1000)


Fired = Queued | Outcome | BaseException
"""What became of a firing."""
Answers = dict[Entry, list[tuple[Slot, Due]]]


class Lookout:
    """Looks, in one short transaction, for the slots of an app that are open.

    All times that it is handed are of the process's own clock, and only pace it.
    """

    def __init__(self, engine: Engine, state: AppState) -> None:
        self._engine, self._state = engine, state
        self._dues = Dues(state.ledger, state.config.namespace)
        self._agenda: Agenda | None = None
        self._anew = False
        self._read_at = 0.0
        self.schedules = {
            job: schedule
            for job in state.jobs
            if (schedule := job.schedule(state.config.timezone)) is not None
        }
        self._texts = {job.identity: str(schedule) for job, schedule in self.schedules.items()}

    def look(self, now: float) -> list[Firing]:
        """Return what is to be fired; its entry is busy until it is handed to :meth:`take_in`."""
        instance = with_pid(self._state.config.instance)
        with GuardedTransaction(self._engine, SHORT_TIMEOUT, instance) as tx:
            agenda = self._agenda if self._is_near(tx.clock) else None
            if agenda is None:
                known_since = self._dues.know(tx, self._texts)
                tx.commit()
            else:
                agenda.read(tx.clock)
                self._read_at = now
                answers = self._ask(tx, agenda, now)
        if agenda is None:
            # Not in the transaction, whose time is short: after a long time this takes long.
            self._read_far(tx.clock, known_since)
            return self.look(now)
        return _choose_all(answers, tx.clock, now)

    def read_anew(self) -> None:
        """Let the next look forget what it knew: the ledger may have lost what it said."""
        self._anew = True

    def _is_near(self, clock: datetime) -> bool:
        agenda = self._agenda
        return agenda is not None and not self._anew and abs(clock - agenda.clock) < FAR

    def _read_far(self, clock: datetime, known_since: Mapping[str, datetime]) -> None:
        if self._agenda is None:
            self._agenda = Agenda(self.schedules.items(), known_since, clock)
        else:
            self._agenda.read(clock, self._anew)
        self._anew = False

    def _ask(self, tx: GuardedTransaction, agenda: Agenda, now: float) -> Answers:
        """Ask the ledger for the oldest slots of each open entry, so many as one look can take."""
        answers: Answers = {}
        asked: list[tuple[Entry, Slot]] = []
        for entry in self._not_elsewhere(tx, agenda.open_at(now), now):
            if len(asked) < MOST_ASKED:
                asked.extend((entry, slot) for slot in entry.slots[:MOST_OF_ONE])
        dues = self._dues.ask(tx, [(entry.job.identity, slot) for entry, slot in asked])
        for (entry, slot), due in zip(asked, dues, strict=True):
            answers.setdefault(entry, []).append((slot, due))
        return answers

    def _not_elsewhere(
        self, tx: GuardedTransaction, entries: list[Entry], now: float
    ) -> list[Entry]:
        """Return *entries* less those whose run elsewhere goes on, and within its time."""
        watched = [entry.job for entry in entries if entry.elsewhere]
        if not watched:
            return entries
        holders = all_holders(tx, self._state.config.namespace, watched)
        held = {holder.name for holder in holders if not holder.overdue}
        free = []
        for entry in entries:
            entry.elsewhere = entry.elsewhere and entry.job.name in held
            if entry.elsewhere:
                entry.wait_until = now + RECHECK
            else:
                free.append(entry)
        return free

    def take_in(self, firing: Firing, result: Fired, now: float) -> None:
        """Note what became of *firing*."""
        entry = firing.entry
        entry.busy, entry.wait_until = False, now
        match result:
            case Ran() | Skipped(Reason.ALREADY_RAN | Reason.TOO_LATE) | Failed(BrokenSlot()):
                entry.settle(firing.slot)
            case Queued(given_up=True):
                entry.settle(firing.slot)
            case Skipped(Reason.ALREADY_RUNNING):
                entry.elsewhere, entry.wait_until = True, now + RECHECK
            case Failed():
                entry.wait_until = now + AGAIN
            case Queued() | CronLockError():
                entry.wait_until = now + RECHECK
            case _:
                entry.wait_until = now + LOOK

    def seconds(self, now: float) -> float:
        """Return how long there is nothing to look for."""
        if self._agenda is None:
            return 0.0
        return min(max(0.0, self._read_at + LOOK - now), self._agenda.seconds(self._read_at, now))


def _choose_all(answers: Answers, clock: datetime, now: float) -> list[Firing]:
    firings = []
    for entry, dues in answers.items():
        if (slot := _choose(entry, dues, now)) is not None:
            entry.busy = True
            firings.append(Firing(entry, slot, clock - slot.at.astimezone(UTC), now))
    return firings


def _choose(entry: Entry, dues: list[tuple[Slot, Due]], now: float) -> Slot | None:
    """Return the oldest slot that may be tried now, and strike out those that are over."""
    waits: list[float] = []
    for slot, due in dues:
        gone_by = due.paused and entry.job.catch_up is CatchUp.NONE
        if due.taken or due.given_up or gone_by:
            entry.settle(slot)
        elif due.paused:
            waits.append(LOOK)
        elif due.retry_in > timedelta():
            waits.append(min(LOOK, due.retry_in.total_seconds()))
        else:
            return slot
    # Where all that was asked for is over, what is left is asked for at once.
    entry.wait_until = now + min(waits, default=0.0)
    return None
