"""The connection to PostgreSQL breaks before each message of a run of the rarer kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.databases import Database
from ..support.wire_cuts import Stage, report, stage
from ..support.wire_job_plays import Broken, Forced, Renamed
from ..support.wire_line import Cut
from ..support.wire_lock_plays import WithLockRaising, WithLockSkipped, WithLockWaiting
from ..support.wire_plays import Play
from ..support.wire_routes import DIRECT

RARE = Forced, Renamed, Broken, WithLockSkipped, WithLockWaiting, WithLockRaising


@pytest.fixture(scope="module")
def direct(module_database: Database) -> Iterator[Stage]:
    with stage(DIRECT, module_database) as made:
        yield made


@pytest.mark.parametrize("play", RARE, ids=lambda play: play.name)
def test_what_was_told_of_a_run_cut_off_at_any_message_is_true(
    direct: Stage, play: type[Play], capsys: pytest.CaptureFixture[str]
) -> None:
    told = direct.cut_everywhere(play(direct.world), Cut.BEFORE)
    report(capsys, f"{play.name}, {DIRECT}", told)
    assert told[play.ends]
