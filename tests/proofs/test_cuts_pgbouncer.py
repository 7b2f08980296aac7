"""The connection to PgBouncer breaks at each message of a run; or its own to PostgreSQL does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.databases import Database
from ..support.wire_all_plays import PLAYS
from ..support.wire_cuts import Stage, report, stage
from ..support.wire_line import Cut
from ..support.wire_plays import DECISIVE, Play, Told
from ..support.wire_routes import BEFORE_POOLER, BEHIND_POOLER


@pytest.fixture(scope="module", params=[BEFORE_POOLER, BEHIND_POOLER])
def pooled(request: pytest.FixtureRequest, module_database: Database) -> Iterator[Stage]:
    with stage(request.param, module_database) as made:
        yield made


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.name)
def test_what_was_told_of_a_run_cut_off_at_any_message_is_true(
    pooled: Stage, play: type[Play], capsys: pytest.CaptureFixture[str]
) -> None:
    told = pooled.cut_everywhere(play(pooled.world, pooled.way.split()[0]), Cut.BEFORE)
    report(capsys, f"{play.name}, {pooled.way}", told)
    assert told[play.ends]


def test_what_was_told_is_true_where_a_decisive_message_still_arrived(
    pooled: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    play = Play(pooled.world, f"{pooled.way.split()[0]}-arrived")
    told = pooled.cut_everywhere(play, Cut.AFTER, about=DECISIVE)
    report(capsys, f"{play.name}, {pooled.way}, cut off after it", told)
    assert all(told[each] for each in (Told.KEPT, Told.NOTHING))


def test_a_decisive_message_that_comes_late_changes_nothing(
    pooled: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    play = Play(pooled.world, f"{pooled.way.split()[0]}-late")
    told = pooled.cut_everywhere(play, Cut.STALL, about=DECISIVE)
    report(capsys, f"{play.name}, {pooled.way}, held up", told)
    assert told[Told.KEPT] == told.total()
