"""A run whose time was up before it had its claim was not begun, and says what to do about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, event

from flask_cronlock.exceptions import NotInTime

from ..support.clocks import engine_of
from ..support.locking import locked
from ..support.processes import wait_until
from ..support.sites import Site
from ..support.worlds import World

RUNS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%'
"""
SLOW_CLAIM = """
CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
CREATE TRIGGER stand_still BEFORE INSERT ON cronlock_run
  FOR EACH ROW EXECUTE FUNCTION stand_still()
"""
TIMEOUT = 1


def app_stands_still(site: Site, engine: Engine) -> None:
    """Let a run send for its lock only when the server has ended it."""

    def stand_still(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "pg_try_advisory_xact_lock" in statement:
            wait_until(lambda: site.database.value(RUNS) == 0)

    event.listen(engine, "before_cursor_execute", stand_still)


def server_stands_still(site: Site, _: Engine) -> None:
    site.database.query(SLOW_CLAIM)


@pytest.mark.parametrize("stall", [app_stands_still, server_stands_still])
def test_a_run_that_never_came_to_its_job_was_not_begun(
    site: Site,
    site_world: World,
    stall: Callable[[Site, Engine], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = site_world
    world.cron.job("report", every="1000d", timeout=TIMEOUT)(world.mark)
    stall(site, engine_of(world))

    with pytest.raises(NotInTime, match="raise it, or see what holds the database up"):
        world.run("report")
    answer = world.post("report")

    assert (answer.status_code, answer.json["error"]) == (503, "Database unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert "A run could not be begun: NotInTime: " in caplog.text
    assert world.marks == 0
    assert world.runs() == world.attempts() == []
    assert site.database.advisory_locks() == 0


def test_work_that_never_came_to_its_lock_was_not_begun(site: Site, site_world: World) -> None:
    world = site_world
    app_stands_still(site, engine_of(world))

    with pytest.raises(NotInTime):
        locked(world, "cache", lambda _: world.mark(), timeout=TIMEOUT)

    assert world.marks == 0
