"""Limits that are set for the role or the database are not a run's, which sets its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from sqlalchemy import event, text

from flask_cronlock.exceptions import Interrupted

from ..support.clocks import engine_of
from ..support.databases import Database
from ..support.outcomes import LONG, reason_of, value_of
from ..support.processes import wait_until
from ..support.sites import SLACK
from ..support.worlds import World

LIMITS = ["idle_in_transaction_session_timeout", "statement_timeout", "transaction_timeout"]


def limit_role(database: Database, seconds: float, *names: str) -> None:
    for name in names:
        role = f"ALTER ROLE postgres IN DATABASE {database.name}"
        database.query(f"{role} SET {name} = '{round(seconds * 1000)}ms'")


def test_a_job_is_idle_and_at_work_for_longer_than_the_role_may(
    make_world: Callable[..., World], database: Database, route: str
) -> None:
    limit_role(database, SLACK, *LIMITS)
    world = make_world(url=route)

    @world.cron.job("report", every=LONG)
    def report() -> None:
        world.note("before")
        time.sleep(SLACK + 0.5)
        world.db.session.execute(text(f"SELECT pg_sleep({SLACK} + 0.5)"))
        world.note("after")

    value_of(world.run("report"))

    assert world.notes == ["after", "before"]
    assert world.attempts() == []
    assert reason_of(world.run("report")) == "already ran"


@pytest.mark.parametrize("limit", [LIMITS[0], LIMITS[2]])
def test_one_that_ends_a_run_before_its_first_statement_is_named(
    make_world: Callable[..., World],
    database: Database,
    caplog: pytest.LogCaptureFixture,
    limit: str,
) -> None:
    """A machine that stands still after BEGIN is still held to them."""
    world = make_world()
    world.cron.job("report", every=LONG)(world.mark)
    limit_role(database, 0.05, limit)
    engine_of(world).dispose()

    def stand_still(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "clock_timestamp" in statement:
            driver = cursor.connection  # type: ignore[attr-defined]
            pid = driver.execute("SELECT pg_backend_pid()").fetchone()[0]
            backend = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
            wait_until(lambda: not world.probe.execute(backend, [pid]).fetchone())

    event.listen(engine_of(world), "before_cursor_execute", stand_still)
    answer = world.post("report")
    with pytest.raises(Interrupted, match=limit):
        world.run("report")
    event.remove(engine_of(world), "before_cursor_execute", stand_still)

    assert (answer.status_code, answer.json["error"]) == (503, "Database unavailable")
    assert limit in caplog.text
    assert world.marks == 0
    assert world.attempts() == []
