"""Flask's proxies can be awaited, whatever is behind them; as values they are no work to do."""

from __future__ import annotations

from typing import Any

from flask import current_app

from ..support.outcomes import LONG, value_of
from ..support.worlds import World


def test_a_job_that_returned_one_has_run(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        return current_app

    value_of(world.run("digest"))
    assert [state for _, _, state in world.runs()] == ["done"]
