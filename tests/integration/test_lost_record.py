"""The answer to the COMMIT that records a failed attempt is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..support.databases import Database
from ..support.outcomes import LONG, error_of
from ..support.wire import Cut, wire_before
from ..support.worlds import World


@pytest.mark.parametrize(("cut", "kept"), [(Cut.BEFORE, False), (Cut.AFTER, True)])
def test_an_attempt_that_was_not_kept_is_not_taken_for_recorded(
    make_world: Callable[..., World],
    database: Database,
    caplog: pytest.LogCaptureFixture,
    cut: Cut,
    kept: bool,
) -> None:
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        world.cron.job("digest", every=LONG)(lambda: 1 / 0)
        wire.cut_at(b"COMMIT\0", cut)

        assert isinstance(error_of(world.run("digest")), ZeroDivisionError)

        assert wire.was_cut.is_set()
    assert len(world.attempts()) == kept
    said = [record.__dict__.get("action") for record in caplog.records]
    assert ("attempt_not_recorded" in said) is not kept
