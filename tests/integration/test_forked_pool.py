"""A forked child and what its parent's pool holds."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from sqlalchemy import text

from ..support.forks import forked
from ..support.outcomes import value_of
from ..support.worlds import World

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def test_a_child_runs_on_a_backend_of_its_own_and_leaves_its_parents_alone(
    make_world: Callable[..., World],
) -> None:
    """The parent's one connection is idle in its pool when the child is forked."""
    world = make_world(engine_options={"pool_size": 1, "max_overflow": 0})

    @world.cron.job("where")
    def where() -> int:
        return int(world.db.session.scalar(text("SELECT pg_backend_pid()")))

    parents = value_of(world.run("where"))

    def run_elsewhere() -> None:
        assert value_of(world.run("where")) != parents

    forked(run_elsewhere)()
    assert value_of(world.run("where")) == parents
