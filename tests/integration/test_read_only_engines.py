"""What an engine or a job makes read-only in the app's pool, is not so for a run's connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import InternalError

from ..support.clocks import engine_of
from ..support.locking import locked
from ..support.outcomes import LONG, value_of
from ..support.worlds import World

OPTION = {"execution_options": {"postgresql_readonly": True}}
ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}


def set_by_a_listener(world: World) -> None:
    def hold(driver: Any, *_: object) -> None:
        driver.read_only = True

    event.listen(engine_of(world), "checkout", hold)


def set_once(world: World) -> None:
    def hold(driver: Any, _: object) -> None:
        driver.read_only = True

    event.listen(engine_of(world), "connect", hold)
    engine_of(world).dispose()


@pytest.mark.parametrize(
    ("options", "prepare"),
    [(OPTION, None), ({}, set_by_a_listener), ({}, set_once)],
    ids=["option", "listener", "once"],
)
def test_a_run_writes_and_the_apps_own_work_does_not(
    make_world: Callable[..., World],
    options: dict[str, Any],
    prepare: Callable[[World], None] | None,
) -> None:
    world = make_world(engine_options={**ONE, **options})
    if prepare is not None:
        prepare(world)
    world.cron.job("digest", every=LONG)(lambda: world.note("kept"))

    value_of(world.run("digest"))
    value_of(locked(world, "cache", lambda _: world.note("under a lock")))

    with engine_of(world).connect() as connection, pytest.raises(InternalError):
        connection.execute(text("INSERT INTO note VALUES ('refused')"))
    assert world.notes == ["kept", "under a lock"]


@pytest.mark.parametrize("command", [["holders"], ["list", "--orphans"]])
def test_a_job_may_give_a_command_of_ours(world: World, command: list[str]) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("kept")
        result = world.app.test_cli_runner().invoke(args=["cron", *command])
        assert result.exit_code == 0, result.output
        with engine_of(world).connect() as connection, pytest.raises(InternalError):
            connection.execute(text("INSERT INTO note VALUES ('refused')"))

    value_of(world.run("digest"))
    assert world.notes == ["kept"]
