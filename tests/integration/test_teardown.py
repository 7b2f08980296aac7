"""What an app does when its context ends comes after the run, and changes nothing of it."""

from __future__ import annotations

import pytest

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
