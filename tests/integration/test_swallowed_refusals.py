"""A job that swallows the refusal to end its connection goes on in a run that is whole."""

from __future__ import annotations

import contextlib

import pytest

from flask_cronlock.exceptions import TransactionEnded

from ..support.outcomes import LONG, value_of
from ..support.worlds import World


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_the_job_goes_on_and_all_it_wrote_is_kept(world: World, end: str) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("first")
        with contextlib.suppress(TransactionEnded):
            getattr(world.db.session.connection(), end)()
        world.note("second")

    value_of(world.run("digest"))

    assert world.notes == ["first", "second"]
    assert [state for *_, state in world.runs()] == ["done"]
