"""The connection to PgBouncer breaks at each message of a run; or its own to PostgreSQL does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.databases import Database
from ..support.wire import Cut
from ..support.wire_cuts import Stage, report, stage
from ..support.wire_other_plays import PLAYS
from ..support.wire_plays import Play
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
