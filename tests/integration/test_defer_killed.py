"""A process that is killed in mid-run has deferred nothing, and claimed nothing."""

from __future__ import annotations

import pytest

from ..support.databases import Database
from ..support.processes import wait_until
from ..support.tasks import deferred, in_a_process, rows, work_all
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def test_the_next_hit_defers_it_all(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DIE", "inside")
        assert in_a_process(database, "job", "digest") == -9
    wait_until(lambda: database.advisory_locks() == 0)
    assert rows(database) == []
    assert world.notes == []
    assert world.runs() == []

    assert in_a_process(database, "job", "digest") == 0
    assert deferred(database) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert world.notes == ["stamped"]
    assert [state for _, _, state in world.runs()] == ["done"]
    # The slot is used up: nothing is deferred twice.
    assert in_a_process(database, "job", "digest") == 0
    assert len(rows(database)) == 3
    assert world.marks == 2


def test_what_was_committed_is_delivered_though_nobody_was_there_to_hear_of_it(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE", "after")
    assert in_a_process(database, "job", "digest") == -9
    world.cron.task("poison")(lambda n: world.note(f"sent {n}"))
    work_all(world)
    assert world.notes == ["sent 0", "sent 1", "sent 2", "stamped"]
