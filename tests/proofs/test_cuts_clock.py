"""A clock's connection to PostgreSQL breaks before each message of its look and its run."""

from __future__ import annotations

import pytest

from ..support.databases import Database
from ..support.wire_clock_plays import ClockRun
from ..support.wire_cuts import report, stage
from ..support.wire_line import Cut
from ..support.wire_plays import Told
from ..support.wire_routes import DIRECT


def test_what_a_clock_that_is_cut_off_at_any_message_tells_is_true(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with stage(DIRECT, database, connections=2) as made:
        told = made.cut_everywhere(ClockRun(made.world), Cut.BEFORE)
    report(capsys, f"{ClockRun.name}, {DIRECT}", told)
    assert all(told[each] for each in (Told.KEPT, Told.NOTHING))
