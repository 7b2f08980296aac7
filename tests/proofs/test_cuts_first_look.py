"""What a clock came to know of a job is kept where no error came, and nothing of it where one did,
unless the error says that this is not known.

The look for open slots, which follows in a transaction of its own, keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flask_cronlock.dues import Dues
from flask_cronlock.limits import SHORT_TIMEOUT
from flask_cronlock.results import Ran
from flask_cronlock.transaction import GuardedTransaction

from ..support.clocks import engine_of, lookout_of, state_of
from ..support.databases import Database
from ..support.wire_cuts import report, stage
from ..support.wire_line import Cut
from ..support.wire_plays import Play, Told
from ..support.wire_routes import DIRECT


class Knowing(Play):
    """The part of a clock's first look that is kept."""

    name = "what is kept of a clock's first look"
    job = "known"

    @contextmanager
    def set(self) -> Iterator[None]:
        self.world.probe.execute("DELETE FROM cronlock_job")
        yield

    def act(self) -> Ran[None]:
        schedules = lookout_of(self.world).schedules.items()
        texts = {job.identity: str(schedule) for job, schedule in schedules}
        dues = Dues(state_of(self.world).ledger, "")
        with GuardedTransaction(engine_of(self.world), SHORT_TIMEOUT, "clock") as tx:
            dues.know(tx, texts)
            tx.commit()
        return Ran(None)

    def kept(self) -> int:
        return self.count("SELECT count(*) FROM cronlock_job WHERE job = %s", self.job)

    def check_told(self, told: Told, before: int) -> None:
        """The clean retry finds what was kept."""
        super().check_told(told, 0)

    def check(self) -> None:
        """It has no run."""


@pytest.mark.parametrize("refuse", [False, True], ids=["let in again", "refused"])
def test_what_was_told_of_a_first_look_cut_off_at_any_message_is_true(
    module_database: Database, refuse: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with stage(DIRECT, module_database) as direct:
        play = Knowing(direct.world)
        told = direct.cut_everywhere(play, Cut.BEFORE, Cut.AFTER, refuse=refuse)
    report(capsys, f"{play.name}, {DIRECT}{', refused' * refuse}", told)
    assert all(told[each] for each in (Told.KEPT, Told.NOTHING))
    assert bool(told[Told.UNKNOWN]) is refuse
