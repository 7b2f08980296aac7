"""No host's wall clock decides anything, be it wrong or turned in mid-flight."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ..support.clock_processes import TRACEBACK, Stage, ran_every_slot_once
from ..support.crowds import SKEWED
from ..support.databases import Database
from ..support.instances import ROOT, at_once
from ..support.worlds import World

PYTHONPATH = f"{SKEWED}:{ROOT}"
TICK = {"tick": {"every": "1s", "catch_up": "all"}}


@pytest.fixture
def stage(database: Database, world: World) -> Stage:
    return Stage(database)


def test_clocks_and_instances_whose_hosts_differ_by_three_minutes_run_a_slot_once(
    stage: Stage,
) -> None:
    jobs = {"pair": {"every": "2s"}}
    ahead = {"CLOCK_SKEW": "90", "PYTHONPATH": PYTHONPATH}
    behind = {"CLOCK_SKEW": "-90", "PYTHONPATH": PYTHONPATH}
    with (
        stage.clock(jobs, **ahead) as one,
        stage.clock(jobs, **behind) as two,
        stage.web(jobs, "-w", "1", name="web.1", **ahead) as web,
        stage.web(jobs, "-w", "1", name="web.2", **behind) as other,
    ):
        for hit in range(10):
            answers = at_once([lambda i=i: i.post("pair") for i in (web, other)])
            assert {answer.status for answer in answers} == {200}
            stage.wait_for_effects("pair", 1 + hit // 2)
        assert one.end() == two.end() == 0
        said = one.said() + two.said() + web.log.read_text() + other.log.read_text()

    assert TRACEBACK not in said
    slots = stage.effects("pair")
    assert len(set(slots)) == len(slots) >= 5
    assert stage.ledger("pair") == sorted(stage.begun("pair")) == slots
    wrong = stage.database.query("SELECT extract(epoch FROM host_at - at) FROM begun")
    assert all(80 < abs(seconds) < 100 for (seconds,) in wrong)
    late = stage.database.query("SELECT started_at - scheduled_at FROM cronlock_run")
    assert all(timedelta(seconds=-1) <= by < timedelta(seconds=2) for (by,) in late)


def test_a_clock_does_not_notice_when_its_hosts_wall_clock_is_turned(
    stage: Stage, tmp_path: Path
) -> None:
    skew = tmp_path / "skew"
    _turn(skew, 0)
    with stage.clock(TICK, CLOCK_SKEW=str(skew), PYTHONPATH=PYTHONPATH) as clock:
        for seconds in (3600, -7200, 86400):
            _turn(skew, seconds)
            stage.wait_for_effects("tick", len(stage.effects("tick")) + 3)
        assert clock.end() == 0
        assert TRACEBACK not in clock.said()

    ran_every_slot_once(stage, "tick", 1)
    hours = "SELECT DISTINCT round(extract(epoch FROM host_at - at) / 3600) FROM begun"
    assert {int(row[0]) for row in stage.database.query(hours)} == {1, -2, 24}
    latest = "SELECT max(started_at - scheduled_at) FROM cronlock_run"
    assert stage.database.value(latest) < timedelta(seconds=10)


def _turn(skew: Path, seconds: float) -> None:
    """Write it as a whole: the process reads it at any moment."""
    new = skew.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(skew)
