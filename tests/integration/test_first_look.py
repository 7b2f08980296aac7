"""A clock's first look writes down since when jobs are known, and knows whether that was kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock.exceptions import OutcomeUnknown, TransactionLost

from ..support.clocks import lookout_of
from ..support.databases import Database
from ..support.outcomes import LONG
from ..support.wire import Cut, wire_before
from ..support.worlds import World


@pytest.mark.parametrize(("cut", "kept"), [(Cut.BEFORE, 0), (Cut.AFTER, 1)])
def test_a_first_look_whose_commit_was_lost_is_done_only_if_it_was_kept(
    make_world: Callable[..., World], database: Database, cut: Cut, kept: int
) -> None:
    """Taken for done, it would not be written again, and a restart would catch up nothing."""
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        world.cron.job("digest", every=LONG)(world.mark)
        with world.app.app_context():
            lookout = lookout_of(world)
            wire.cut_at(b"COMMIT\0", cut)
            if kept:
                lookout.look(0)
            else:
                with pytest.raises(TransactionLost, match="held no lock"):
                    lookout.look(0)
            assert wire.was_cut.is_set()
            assert database.value("SELECT count(known_since) FROM cronlock_job") == kept
            lookout.read_anew()
            lookout.look(0)
            assert database.value("SELECT count(known_since) FROM cronlock_job") == 1


@pytest.mark.parametrize(("cut", "kept"), [(Cut.BEFORE, 0), (Cut.AFTER, 1)])
def test_a_first_look_that_cannot_ask_whether_it_was_kept_says_so(
    make_world: Callable[..., World], database: Database, cut: Cut, kept: int
) -> None:
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        world.cron.job("digest", every=LONG)(world.mark)
        lookout = lookout_of(world)
        wire.cut_at(b"COMMIT\0", cut, refuse=True)
        with pytest.raises(OutcomeUnknown):
            lookout.look(0)
        assert database.value("SELECT count(known_since) FROM cronlock_job") == kept
        wire.mend()
        lookout.look(0)
        assert database.value("SELECT count(known_since) FROM cronlock_job") == 1
