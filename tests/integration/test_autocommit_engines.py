"""An engine in AUTOCOMMIT frees no lock in mid-run."""

from __future__ import annotations

from typing import Any

import pytest

from flask_cronlock import Reason

from ..support.databases import Database
from ..support.outcomes import LONG, elsewhere, reason_of, value_of
from ..support.worlds import World, bare_world


@pytest.mark.parametrize(
    "options", [{"isolation_level": "AUTOCOMMIT"}, {"connect_args": {"autocommit": True}}]
)
def test_the_lock_is_held_and_the_claim_kept_back_until_the_end(
    world: World, database: Database, options: dict[str, Any]
) -> None:
    """The tables are those of *world*, an app whose engine is an ordinary one."""
    meanwhile: list[Any] = []
    with bare_world(database, engine_options=options) as other:

        @other.cron.job("digest", every=LONG)
        def digest() -> None:
            other.note("kept")
            meanwhile.append(elsewhere(lambda: other.run("digest")))
            assert world.runs() == world.notes == []

        value_of(other.run("digest"))

    assert reason_of(meanwhile[0]) is Reason.ALREADY_RUNNING
    assert world.notes == ["kept"]
