"""A claim that the user's own database keeps from being written is nobody's run."""

from __future__ import annotations

import pytest

from flask_cronlock.exceptions import ConfigError

from ..support.databases import Database
from ..support.history import EVERY, put
from ..support.outcomes import LONG, value_of
from ..support.worlds import World

SWALLOW = """
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER swallow BEFORE INSERT ON cronlock_run FOR EACH ROW EXECUTE FUNCTION swallow()
"""


@pytest.fixture(autouse=True)
def swallow(world: World) -> None:
    world.probe.execute(SWALLOW)
    world.cron.job("digest", every=LONG)(world.mark)


@pytest.mark.parametrize("force", [False, True])
def test_a_trigger_that_swallows_claims_is_named(world: World, force: bool) -> None:
    with pytest.raises(ConfigError, match="trigger on cronlock_run"):
        world.run("digest", force=force)
    assert world.marks == 0


def test_it_is_named_also_where_the_slot_was_missed_under_another_name(
    world: World, database: Database
) -> None:
    world.cron.job("mail", every=EVERY, previous_names=["post"])(world.mark)
    world.probe.execute("ALTER TABLE cronlock_run DISABLE TRIGGER swallow")
    put(database, [0], "missed", job="mail")
    world.probe.execute("ALTER TABLE cronlock_run ENABLE TRIGGER swallow")

    with pytest.raises(ConfigError, match="trigger on cronlock_run"):
        world.run("mail")
    assert world.marks == 0


def test_the_slot_is_open_when_the_trigger_is_gone(world: World) -> None:
    assert world.post("digest").json["error"] == "Misconfigured"
    world.probe.execute("DROP TRIGGER swallow ON cronlock_run")
    value_of(world.run("digest"))
    assert world.marks == 1
