"""A worker that is killed in the call of an item whose effect is in the database."""

from __future__ import annotations

import pytest

from ..support.processes import wait_until
from ..support.tasks import GivenUp, in_a_process, records, rows, work
from ..support.tasks_app import ATTEMPTS
from ..support.worlds import World


@pytest.fixture
def world(entered_world: World) -> World:
    entered_world.cron.task("poison", attempts=ATTEMPTS)(lambda n: entered_world.mark("poison"))
    return entered_world


def kill(world: World, attempts: int) -> None:
    assert in_a_process(world.database, "work", "poison", attempts) == -9
    # The server rolls back what the dead had begun as soon as it sees that.
    wait_until(
        lambda: (
            not world.database.value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
        )
    )


@pytest.mark.parametrize("batch", [1, 3])
def test_neither_its_record_nor_its_effect_is_kept_and_others_are_done(
    world: World, batch: int
) -> None:
    numbers = [{"n": 1}] if batch == 1 else [{"n": n} for n in range(3)]
    world.cron.defer_many(world.db.session, "poison", numbers, batch=batch)
    world.db.session.commit()

    kill(world, 0)
    assert world.notes == []
    assert records(world) == []

    kill(world, 1)
    others = ["0"] if batch == 3 else []
    assert world.notes == others
    assert records(world)[-1] == ("started", 1, False)


def test_it_is_the_death_of_as_many_workers_as_it_has_attempts(world: World) -> None:
    world.cron.defer_many(world.db.session, "poison", [{"n": n} for n in range(3)], batch=3)
    world.db.session.commit()
    [row] = rows(world)

    # The first delivery is not counted: which of a batch was the end of it, nobody knows.
    for attempts in range(ATTEMPTS + 1):
        kill(world, attempts)
    with pytest.raises(GivenUp, match="1 failed"):
        work(world, row, ATTEMPTS + 1)
    assert records(world, "state") == ["done", "failed", "done"]
    assert world.database.query(
        "SELECT DISTINCT error FROM cronlock_item WHERE error IS NOT NULL"
    ) == [(f"its worker died in attempt {ATTEMPTS}",)]
    assert world.notes == ["0"]
