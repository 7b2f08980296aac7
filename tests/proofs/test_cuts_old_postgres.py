"""The connection breaks where no limit of the server's is for a whole transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.databases import fresh_database, temporary
from ..support.programs import find_old_postgres
from ..support.wire_cuts import Stage, report, stage
from ..support.wire_job_plays import Slow
from ..support.wire_line import Cut
from ..support.wire_lock_plays import WithLockWaiting
from ..support.wire_plays import Play, Told
from ..support.wire_routes import DIRECT

OLD = "PostgreSQL 14 to 16"
SET_ANEW = b"\nSELECT set_config('statement_timeout'"
"""What a run says there now and then, to limit its next statement to what is left of its time."""


@pytest.fixture(scope="module")
def old() -> Iterator[Stage]:
    with (
        temporary(bin=find_old_postgres()) as server,
        fresh_database(server) as database,
        stage(DIRECT, database) as made,
    ):
        yield made


@pytest.mark.parametrize("play", [Play, WithLockWaiting], ids=lambda play: play.name)
def test_what_was_told_of_a_run_cut_off_at_any_message_is_true(
    old: Stage, play: type[Play], capsys: pytest.CaptureFixture[str]
) -> None:
    told = old.cut_everywhere(play(old.world), Cut.BEFORE)
    report(capsys, f"{play.name}, {OLD}", told)
    assert told[play.ends]


def test_nothing_is_kept_where_the_limits_cannot_be_set_anew(
    old: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    told = old.cut_everywhere(Slow(old.world), Cut.BEFORE, about=[SET_ANEW])
    report(capsys, f"{Slow.name}, {OLD}", told)
    assert told[Told.NOTHING] == told.total()
