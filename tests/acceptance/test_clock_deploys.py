"""A deploy in the middle of a clock's run: the new server's clock runs the slot, and all others."""

from __future__ import annotations

from ..support.clock_processes import Stage, gaps
from ..support.databases import Database
from ..support.holders import free
from ..support.processes import wait_until
from ..support.worlds import World

JOB = {"every": "2s", "catch_up": "all", "timeout": "10m"}
SERVER = ["-w", "1", "--graceful-timeout", "1"]


def test_a_run_that_outlasts_the_graceful_timeout_is_left_to_the_new_servers_clock(
    database: Database, world: World
) -> None:
    stage = Stage(database)
    with stage.web({"digest": {**JOB, "seconds": 300}}, *SERVER, START_CLOCK="1") as old:
        stage.wait_for_begun("digest")
        (slot,) = stage.begun("digest")
        old.process.terminate()
        old.process.wait(40)
    wait_until(lambda: free(database))
    assert stage.effects("digest") == stage.ledger("digest") == []

    with stage.web({"digest": JOB}, *SERVER, name="web.2", START_CLOCK="1"):
        stage.wait_for_effects("digest", 4)

    slots = stage.effects("digest")
    assert slots[0] == slot
    assert set(gaps(slots, 2)) == {1.0}
    assert stage.ledger("digest") == slots
    assert stage.begun("digest") == [slot, *slots]
    assert world.attempts() == []
