"""Nothing of a run stays behind on a pooled backend, however the run ends."""

from __future__ import annotations

from collections.abc import Callable

from flask_cronlock import Failed, Ran

from ..support.databases import Database
from ..support.instances import start_run
from ..support.pgbouncer import PgBouncer
from ..support.processes import wait_until
from ..support.worlds import World


def test_thirty_runs_through_a_pooler_leave_no_lock(
    make_world: Callable[..., World], database: Database, pgbouncer: PgBouncer
) -> None:
    """Of each ten, seven end well, two raise and one is killed in its body."""
    url = pgbouncer.url(database)
    world = make_world(url=url)

    @world.cron.job("steady")
    def steady() -> None: ...

    @world.cron.job("failing")
    def failing() -> None:
        raise ValueError("as asked")

    @world.cron.job("idle", every="1d")
    def idle() -> str:
        return "not killed"

    for killed in range(1, 4):
        assert all(isinstance(world.run("steady"), Ran) for _ in range(7))
        assert all(isinstance(world.run("failing"), Failed) for _ in range(2))
        assert database.advisory_locks() == 0
        with start_run(database, "idle", url=url, JOB_SECONDS="300") as process:
            wait_until(lambda killed=killed: world.marks == killed, 60)
            process.kill()

    wait_until(lambda: database.advisory_locks() == 0, 5)
    outcome = world.run("idle")
    assert isinstance(outcome, Ran)
    assert outcome.value == "not killed"
    assert database.advisory_locks() == 0
    assert world.notes == []
    assert len(world.attempts()) == 6
    assert len(world.runs()) == 22
