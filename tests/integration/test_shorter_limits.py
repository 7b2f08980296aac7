"""A pooler's limit that is shorter than the job: the run is lost, and the next one's effect is the
only one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Outcome, Ran, Reason

from ..support.databases import Database, Server
from ..support.holders import free
from ..support.outcomes import LONG, elsewhere, reason_of
from ..support.pgbouncer import pgbouncer_before
from ..support.processes import wait_until
from ..support.worlds import World


def in_one_statement(world: World) -> list[Outcome]:
    world.db.session.execute(world.db.text("SELECT pg_sleep(60)"))
    return []


def idle(world: World) -> list[Outcome]:
    """Return how the next run ended that began while this one is still at work."""
    wait_until(lambda: free(world.database))
    return [elsewhere(lambda: world.run("report"))]


@pytest.mark.parametrize("writes_again", [True, False], ids=["writes again", "just returns"])
@pytest.mark.parametrize(
    ("limit", "spend_time"),
    [("query_timeout", in_one_statement), ("idle_transaction_timeout", idle)],
)
def test_the_run_hints_at_the_limit_and_only_the_next_one_has_an_effect(
    postgres: Server,
    database: Database,
    make_world: Callable[..., World],
    limit: str,
    spend_time: Callable[[World], list[Outcome]],
    writes_again: bool,
) -> None:
    nexts: list[Outcome] = []
    with pgbouncer_before(postgres, **{limit: 1}) as pooler:
        world = make_world(url=pooler.url(database))

        @world.cron.job("report", every=LONG, timeout=60)
        def report() -> None:
            first = world.marks == 0
            world.mark()
            world.note("first" if first else "second")
            if first:
                nexts.extend(spend_time(world))
                if writes_again:
                    world.note("first again")

        lost = world.post("report")
        wait_until(lambda: free(database))
        nexts.append(world.run("report"))
        if len(nexts) == 1:
            nexts.append(world.run("report"))

    assert (lost.status_code, lost.json["error"]) == (500, "Lock lost")
    [(_, told)] = world.attempts()
    assert told.startswith("LockLost")
    assert limit in told
    assert "raise it above the job's timeout" in told
    assert isinstance(nexts[0], Ran)
    assert reason_of(nexts[1]) is Reason.ALREADY_RAN
    assert world.notes == ["second"]
    assert [state for *_, state in world.runs()] == ["done"]
