"""A slot runs once."""

from __future__ import annotations

from collections.abc import Callable

from flask_cronlock import Ran, Reason, Skipped

from ..support.worlds import World


def test_a_slot_runs_once_and_says_so_after_that(
    make_world: Callable[..., World], route: str
) -> None:
    world = make_world(url=route)

    @world.cron.job("digest", schedule="0 7 * * *", tz="Europe/Berlin")
    def digest() -> int:
        world.mark()
        world.note("sent")
        return 3

    assert isinstance(world.run("digest"), Ran)
    again = world.run("digest")

    assert isinstance(again, Skipped)
    assert again.reason is Reason.ALREADY_RAN
    assert again.ran_at is not None
    assert world.marks == 1
    assert world.notes == ["sent"]
