"""The connection to PostgreSQL breaks at each message of a run, and is whole again at the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.databases import Database
from ..support.wire_all_plays import PLAYS
from ..support.wire_cuts import Stage, report, stage
from ..support.wire_line import Cut
from ..support.wire_plays import OnNewConnection, Play, Told
from ..support.wire_routes import DIRECT


@pytest.fixture(scope="module")
def direct(module_database: Database) -> Iterator[Stage]:
    with stage(DIRECT, module_database) as made:
        yield made


@pytest.mark.parametrize("play", [*PLAYS, OnNewConnection], ids=lambda play: play.name)
def test_what_was_told_of_a_run_cut_off_at_any_message_is_true(
    direct: Stage, play: type[Play], capsys: pytest.CaptureFixture[str]
) -> None:
    told = direct.cut_everywhere(play(direct.world), Cut.BEFORE, Cut.AFTER)
    report(capsys, f"{play.name}, {DIRECT}", told)
    assert told[play.ends]


def test_a_message_that_comes_late_changes_nothing(
    direct: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    told = direct.cut_everywhere(Play(direct.world, "late"), Cut.STALL)
    report(capsys, f"{Play.name}, {DIRECT}, held up", told)
    assert told[Told.KEPT] == told.total()


def test_what_is_told_is_true_where_no_new_connection_can_be_had(
    direct: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    told = direct.cut_everywhere(Play(direct.world, "refused"), Cut.BEFORE, refuse=True)
    report(capsys, f"{Play.name}, {DIRECT}, refused", told)
    assert all(told[each] for each in (Told.NOTHING, Told.UNKNOWN))
