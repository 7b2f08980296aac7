"""What an app does when a context begins or ends changes nothing of the run or its caller."""

from __future__ import annotations

import pytest
from flask import appcontext_pushed

from ..support.outcomes import LONG, value_of
from ..support.worlds import World


def test_a_function_that_raises_is_logged_and_the_run_stands(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.cron.job("digest", every=LONG)(lambda: world.note("kept"))

    errors = [ValueError("as asked")]

    @world.app.teardown_appcontext
    def fail(_: BaseException | None) -> None:
        if errors:
            raise errors.pop()

    value_of(world.run("digest"))

    assert (world.notes, errors) == (["kept"], [])
    assert "teardown_failed" in [record.__dict__.get("action") for record in caplog.records]


def test_a_receiver_that_raises_as_the_runs_context_begins_leaves_the_caller_its_own(
    world: World,
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)

    def fail(_: object) -> None:
        raise ValueError("as asked")

    with world.app.app_context():
        callers = world.db.session()
        with appcontext_pushed.connected_to(fail, world.app), pytest.raises(ValueError, match="as"):
            world.cron.run("digest")
        assert world.db.session() is callers
    assert world.marks == 0
