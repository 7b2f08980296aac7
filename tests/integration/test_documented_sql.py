"""The SQL that docs/configuration.md gives does what the page says."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from flask_cronlock import Reason

from ..support.outcomes import reason_of, value_of
from ..support.worlds import World

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PAUSE, DELETE = (block for block in BLOCKS if not block.startswith("GRANT"))


def test_a_job_is_paused_and_goes_on(world: World) -> None:
    world.cron.job("sync", every="1d")(world.mark)
    for _ in range(2):
        world.database.query(PAUSE)
        assert reason_of(world.run("sync")) is Reason.PAUSED
    world.database.query("UPDATE cronlock_job SET paused_at = NULL")
    value_of(world.run("sync"))


def test_old_runs_are_deleted_but_for_the_newest_of_each_job(world: World) -> None:
    world.cron.job("sync", every="1d", max_lateness="400d")(world.mark)
    world.cron.job("rare", every="1000d")(world.mark)
    newest = world.run("sync").slot
    assert newest is not None
    value_of(world.run("rare"))
    value_of(world.run("sync", slot=newest - timedelta(days=300)))
    world.database.query("UPDATE cronlock_run SET started_at = started_at - interval '300 days'")
    world.database.query(
        "INSERT INTO cronlock_attempt SELECT id, namespace, job, slot_key, "
        "scheduled_at, trigger, forced, instance, app, started_at, finished_at, "
        "'as asked' FROM cronlock_run"
    )
    for statement in filter(str.strip, DELETE.split(";")):
        world.database.query(statement)
    left = world.database.query("SELECT job, scheduled_at FROM cronlock_run WHERE job = 'sync'")
    assert left == [("sync", newest)]
    assert [job for job, _, _ in world.runs()].count("rare") == 1
    assert world.attempts() == []
