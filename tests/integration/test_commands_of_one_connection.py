"""A command in an app whose session outlives its contexts, and whose pool has one connection."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from flask_sqlalchemy import SQLAlchemy

from ..support.outcomes import LONG
from ..support.worlds import World


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    world = make_world(
        db=SQLAlchemy(session_options={"scopefunc": threading.get_ident}),
        engine_options={"pool_size": 1, "max_overflow": 0, "pool_timeout": 1},
    )
    world.cron.job("digest", every=LONG)(lambda: world.note("run"))
    return world


def run_after(world: World, statement: str) -> tuple[int, str]:
    """Return exit status and output of a run in a thread whose session has executed *statement*."""
    with world.app.app_context():
        world.db.session.execute(world.db.text(statement))
        result = world.app.test_cli_runner().invoke(args=["cron", "run", "digest"])
        world.db.session.rollback()
    return result.exit_code, result.output


def test_an_open_transaction_that_only_read_gives_its_connection_up(world: World) -> None:
    status, output = run_after(world, "SELECT 1")
    assert (status, world.notes) == (0, ["run"]), output


def test_an_open_transaction_that_wrote_is_refused(world: World) -> None:
    status, output = run_after(world, "INSERT INTO note VALUES ('pending')")
    assert (status, world.notes) == (2, []), output
