"""What became of runs that workers were asked for is forgotten after CRONLOCK_QUEUE_HISTORY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import procrastinate

from flask_cronlock.queue.sweeping import Sweep

from ..support.clocks import state_of
from ..support.databases import Database
from ..support.errands import get, work
from ..support.worlds import World


async def sweep(world: World, history: timedelta) -> None:
    state = state_of(world)
    connector = procrastinate.PsycopgConnector(conninfo=world.database.conninfo)
    async with procrastinate.App(connector=connector).open_async():
        tables, namespace = (state.records.table, state.requests.table), state.config.namespace
        await Sweep(connector, ["cronlock.jobs"], *tables, namespace, history).sweep()


def test_only_those_that_ended_long_ago_are_forgotten(
    make_world: Callable[..., World], database: Database
) -> None:
    world, other = make_world(), make_world(CRONLOCK_NAMESPACE="other")
    for each in (world, other):
        each.cron.job("sync", on="worker")(each.mark)
    ended, ended_elsewhere = world.post("sync"), other.post("sync")
    assert (work(world), work(world, at_work=other)) == ("done", "done")
    database.query("UPDATE cronlock_request SET ended_at = ended_at - interval '40 days'")
    recent = world.post("sync")
    assert work(world) == "done"
    waiting = world.post("sync")
    database.query("UPDATE cronlock_request SET requested_at = requested_at - interval '40 days'")

    asyncio.run(sweep(world, timedelta(days=30)))

    hits = (ended, recent, waiting)
    assert [get(world, hit.headers["Location"]).status_code for hit in hits] == [404, 200, 200]
    assert get(other, ended_elsewhere.headers["Location"]).status_code == 200
