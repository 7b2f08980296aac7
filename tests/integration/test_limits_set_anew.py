"""Limits that are set a second time in one transaction count from then."""

from __future__ import annotations

import time
from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from flask_cronlock.transaction import GuardedTransaction

from ..support.locking import locked
from ..support.outcomes import value_of
from ..support.sites import BRISK
from ..support.worlds import World


def test_one_that_ran_already_ends_nothing(world: World) -> None:
    """A timer of the server's that runs is not set anew by another value alone."""
    with (
        world.app.app_context(),
        GuardedTransaction(world.db.engine, timedelta(seconds=BRISK), "me/1") as tx,
    ):
        tx.arm(timedelta(seconds=60), "0")
        time.sleep(BRISK + 0.2)
        assert tx.execute(text("SELECT 1")).scalar() == 1


def test_those_of_work_do_not_have_the_wait_for_its_lock_in_them(world: World) -> None:
    def look(session: Session) -> str:
        return str(session.scalar(text("SHOW statement_timeout")))

    assert value_of(locked(world, "cache", look, timeout="30s", wait="20s")) == "30s"
