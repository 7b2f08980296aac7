"""A job that has its connection give rows of another kind ends as it should, or keeps nothing."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.rows import dict_row, scalar_row

from flask_cronlock import Failed, Ran

from ..support.outcomes import LONG
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


@pytest.mark.parametrize("factory", [dict_row, scalar_row])
def test_what_is_told_of_the_run_is_what_became_of_it(world: World, factory: Any) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("sent")
        connection = world.db.session.connection().connection
        assert connection.driver_connection is not None
        connection.driver_connection.row_factory = factory

    outcome = world.run("digest")

    assert isinstance(outcome, Ran | Failed)
    kept = isinstance(outcome, Ran)
    assert world.notes == ["sent"] * kept
    assert [state for *_, state in world.runs()] == ["done"] * kept
    assert world.database.advisory_locks() == 0
    with world.app.app_context():
        assert world.db.session.execute(world.db.text("SELECT 1")).one() == (1,)
