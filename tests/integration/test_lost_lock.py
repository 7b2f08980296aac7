"""A run whose transaction was taken away keeps nothing, says so, and its slot runs again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Ran
from flask_cronlock.exceptions import LockLost

from ..support.worlds import World

END_RUNS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%'
"""


@pytest.mark.parametrize("speaks_again", [True, False], ids=["speaks again", "just returns"])
def test_a_run_whose_backend_was_ended_is_lost_and_the_next_hit_runs_the_slot(
    make_world: Callable[..., World], route: str, speaks_again: bool
) -> None:
    world = make_world(url=route)

    @world.cron.job("report", every="1d")
    def report() -> None:
        world.note("written")
        if world.marks == 0:
            world.mark()
            assert world.database.query(END_RUNS) == [(True,)]
            if speaks_again:
                world.note("written after the end")

    lost = world.post("report")

    assert (lost.status_code, lost.json["error"]) == (500, "Lock lost")
    assert world.notes == []
    assert world.runs() == []
    assert [(job, error[:8]) for job, error in world.attempts()] == [("report", "LockLost")]
    assert world.post("report").json["outcome"] == "ran"
    assert world.notes == ["written"]


def test_a_work_under_with_lock_whose_backend_was_ended_raises(
    make_world: Callable[..., World], route: str
) -> None:
    world = make_world(url=route)

    def work(_: object) -> None:
        world.note("written")
        world.database.query(END_RUNS)

    with world.app.app_context():
        with pytest.raises(LockLost):
            world.cron.with_lock("report", work)
        assert isinstance(world.cron.with_lock("report", lambda _: None), Ran)
    assert world.notes == []
