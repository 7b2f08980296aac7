"""Which slots are to be fired now: the agenda, put to the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta

from sqlalchemy import Engine

from .agenda import Agenda, Entry
from .dues import Due, Dues
from .exceptions import BrokenSlot, CronLockError
from .holders import all_holders
from .instance import with_pid
from .limits import SHORT_TIMEOUT
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


class Lookout:
    """Looks, in one short transaction, for the slots of an app that are open.

    All times that it is handed are of the process's own clock, and only pace it.
    """

    def __init__(self, engine: Engine, state: AppState) -> None:
        self._engine, self._state = engine, state
        self._dues = Dues(state.ledger, state.config.namespace)
        self._agenda: Agenda | None = None
        self._read_at = 0.0
        self.schedules = {
            job: schedule
            for job in state.jobs
            if (schedule := job.schedule(state.config.timezone)) is not None
        }

    def look(self, now: float) -> list[Firing]:
        """Return what is to be fired; its entry is busy until it is handed to :meth:`take_in`."""
        instance = with_pid(self._state.config.instance)
        with GuardedTransaction(self._engine, SHORT_TIMEOUT, instance) as tx:
            agenda = self._read(tx)
            self._read_at = now
            entries = self._not_elsewhere(tx, agenda.open_at(now), now)
            asked = [(entry, slot) for entry in entries for slot in entry.slots]
            answers = self._dues.ask(tx, [(e.job.identity, slot) for e, slot in asked])
            by_entry: dict[Entry, list[tuple[Slot, Due]]] = {entry: [] for entry in entries}
            for (entry, slot), due in zip(asked, answers, strict=True):
                by_entry[entry].append((slot, due))
            tx.commit()
        self._agenda = agenda
        firings = []
        for entry, dues in by_entry.items():
            if (chosen := _choose(entry, dues, now)) is not None:
                entry.busy = True
                late = tx.clock - chosen.at.astimezone(UTC)
                firings.append(Firing(entry, chosen, late, now))
        return firings

    def _read(self, tx: GuardedTransaction) -> Agenda:
        if self._agenda is not None:
            self._agenda.read(tx.clock)
            return self._agenda
        texts = {job.identity: str(schedule) for job, schedule in self.schedules.items()}
        return Agenda(self.schedules.items(), self._dues.know(tx, texts), tx.clock)

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

    def take_in(self, firing: Firing, result: Outcome | BaseException, now: float) -> None:
        """Note what became of *firing*."""
        entry = firing.entry
        entry.busy, entry.wait_until = False, now
        match result:
            case Ran() | Skipped(Reason.ALREADY_RAN | Reason.TOO_LATE) | Failed(BrokenSlot()):
                entry.settle(firing.slot)
            case Skipped(Reason.ALREADY_RUNNING):
                entry.elsewhere, entry.wait_until = True, now + RECHECK
            case Failed():
                entry.wait_until = now + AGAIN
            case CronLockError():
                entry.wait_until = now + RECHECK
            case _:
                entry.wait_until = now + LOOK

    def seconds(self, now: float) -> float:
        """Return how long there is nothing to look for."""
        if self._agenda is None:
            return 0.0
        return min(max(0.0, self._read_at + LOOK - now), self._agenda.seconds(self._read_at, now))


def _choose(entry: Entry, dues: list[tuple[Slot, Due]], now: float) -> Slot | None:
    """Return the oldest slot that may be tried now, and strike out those that are over."""
    waits = [LOOK]
    for slot, due in dues:
        if due.taken or due.given_up:
            entry.settle(slot)
        elif due.paused:
            continue
        elif due.retry_in <= timedelta():
            return slot
        else:
            waits.append(due.retry_in.total_seconds())
    entry.wait_until = now + min(waits)
    return None
