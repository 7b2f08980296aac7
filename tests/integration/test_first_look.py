"""A clock's first look writes down since when jobs are known, and knows whether that was kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock.exceptions import LockLost
from flask_cronlock.lookout import Lookout
from flask_cronlock.state import this_state

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
            lookout = Lookout(world.db.engine, this_state())
            wire.cut_at(b"COMMIT\0", cut)
            if kept:
                lookout.look(0)
            else:
                with pytest.raises(LockLost):
                    lookout.look(0)
            assert wire.was_cut.is_set()
            assert database.value("SELECT count(known_since) FROM cronlock_job") == kept
            lookout.read_anew()
            lookout.look(0)
            assert database.value("SELECT count(known_since) FROM cronlock_job") == 1
