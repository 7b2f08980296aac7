"""A forked child and what its parent's pool holds."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable

import pytest
from sqlalchemy import text

from ..support.outcomes import value_of
from ..support.worlds import World

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PATIENCE = 60
"""Seconds after which a child that hangs is ended."""


def in_a_child(work: Callable[[], object]) -> int:
    """Do *work* in a child and return the child's exit code: 0 where nothing was raised."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        code = 1
        try:
            work()
            gc.collect()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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

    assert in_a_child(run_elsewhere) == 0, "see the child's traceback"
    assert value_of(world.run("where")) == parents
