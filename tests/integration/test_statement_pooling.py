"""PgBouncer with ``pool_mode = statement`` has no transactions, so nothing runs behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from flask_cronlock.exceptions import StatementPooling

from ..support.databases import Database, Server
from ..support.outcomes import LONG, value_of
from ..support.pgbouncer import pgbouncer_before
from ..support.worlds import World, bare_world


@pytest.fixture
def pooled(
    postgres: Server, database: Database, make_world: Callable[..., World]
) -> Iterator[World]:
    """A world behind statement pooling, with its tables made by another way."""
    make_world()
    with (
        pgbouncer_before(postgres, pool_mode="statement") as pooler,
        bare_world(database, url=pooler.url(database)) as world,
    ):
        world.cron.job("digest", every=LONG)(world.mark)
        yield world


def test_a_run_and_a_lock_are_refused_with_the_cure_and_nothing_runs(pooled: World) -> None:
    for _ in range(2):
        with pytest.raises(StatementPooling, match="set pool_mode = transaction"):
            pooled.run("digest")
    with pooled.app.app_context(), pytest.raises(StatementPooling):
        pooled.cron.with_lock("cache", lambda _: pooled.mark())

    assert pooled.marks == 0
    assert pooled.runs() == pooled.attempts() == []
    assert pooled.database.advisory_locks() == 0


def test_a_hit_is_unavailable_and_the_log_names_the_cure(
    pooled: World, caplog: pytest.LogCaptureFixture
) -> None:
    answer = pooled.post("digest")

    assert (answer.status_code, answer.json["error"]) == (503, "Database unavailable")
    assert answer.headers["Retry-After"]
    assert "set pool_mode = transaction" in caplog.text


@pytest.mark.parametrize("command", [["run", "digest"], ["init-db"], ["holders"]], ids=" ".join)
def test_a_command_names_the_cure(pooled: World, command: list[str]) -> None:
    result = pooled.app.test_cli_runner().invoke(args=["cron", *command])

    assert result.exit_code == 1
    assert "set pool_mode = transaction" in result.output


def test_a_way_past_the_pooler_runs_the_slot(
    pooled: World, make_world: Callable[..., World]
) -> None:
    with pytest.raises(StatementPooling):
        pooled.run("digest")
    direct = make_world()
    direct.cron.job("digest", every=LONG)(direct.mark)

    value_of(direct.run("digest"))
    assert direct.marks == 1
