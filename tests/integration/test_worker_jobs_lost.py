"""A hit of a job for workers whose connection breaks in COMMIT: it is on the queue, or is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..support.databases import Database
from ..support.errands import rows, told, work
from ..support.outcomes import LONG
from ..support.wire import Cut, wire_before
from ..support.worlds import World


@pytest.mark.parametrize(("cut", "status"), [(Cut.BEFORE, 503), (Cut.AFTER, 202)])
def test_a_hit_whose_commit_was_lost_is_answered_as_it_was_kept(
    make_world: Callable[..., World], database: Database, cut: Cut, status: int
) -> None:
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        world.cron.job("digest", every=LONG, on="worker")(world.mark)
        world.post("no-such-job")
        wire.cut_at(b"COMMIT\0", cut)

        answer = world.post("digest")

        assert wire.was_cut.is_set()
        assert answer.status_code == status
        assert len(rows(world)) == (status == 202)
        again = world.post("digest")
        assert len(rows(world)) == 1
        assert told(world, again)["state"] == "queued"


def test_where_that_cannot_be_found_out_it_is_said_and_the_next_hit_settles_it(
    make_world: Callable[..., World], database: Database
) -> None:
    with wire_before(database) as wire:
        world = make_world(url=wire.url(database))
        world.cron.job("digest", every=LONG, on="worker")(world.mark)
        wire.cut_at(b"COMMIT\0", Cut.AFTER, refuse=True)
        unknown = world.post("digest")
        wire.mend()

        again = world.post("digest")
        assert len(rows(world)) == 1
        assert work(world) == "done"

    body = unknown.get_json()
    assert (unknown.status_code, body) == (500, {"job": "digest", "error": "Outcome unknown"})
    assert again.status_code == 202
