"""Which slot a run is for, as the database's clock has it; and runs that use up none."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event, text

from flask_cronlock import Ran, Reason, Run, Skipped
from flask_cronlock.exceptions import SlotError

from ..support.outcomes import LONG, elsewhere, reason_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def newest_slot(world: World, days: int = 1000) -> datetime:
    seconds = days * 86400
    number = world.database.value(f"SELECT floor(extract(epoch FROM now()) / {seconds})::bigint")
    return datetime.fromtimestamp(int(number) * seconds, UTC)


def test_the_job_is_handed_its_slot_and_what_goes_with_it(world: World) -> None:
    found: list[Run] = []

    @world.cron.job("digest", every=LONG, timeout="50s")
    def digest(run: Run) -> None:
        assert timedelta(seconds=40) < run.remaining <= timedelta(seconds=50)
        assert run.deadline == run.started_at + timedelta(seconds=50)
        found.append(run)

    outcome = world.run("digest")

    run, slot = found[0], newest_slot(world)
    assert isinstance(outcome, Ran)
    assert run.slot == outcome.slot == slot
    assert run.previous_slot == slot - timedelta(days=1000)
    assert run.next_slot == outcome.next_slot == slot + timedelta(days=1000)
    assert (run.id, run.trigger, run.forced) == (outcome.run_id, "manual", False)
    assert world.runs() == [("digest", slot.strftime("%Y-%m-%dT%H:%MZ"), "done")]


def test_the_slot_is_of_the_databases_clock_and_not_of_the_transactions_start(
    make_world: Callable[..., World],
) -> None:
    world = make_world(CRONLOCK_EARLY=0)

    @world.cron.job("digest", every="1s", max_lateness="1h")
    def digest(run: Run) -> Any:
        return world.db.session.scalar(text("SELECT now()"))

    with world.app.app_context():

        @event.listens_for(world.db.engine, "begin")
        def dawdle(connection: Any) -> None:
            connection.exec_driver_sql("SELECT pg_sleep(1.1)")

    outcome = world.run("digest")

    assert isinstance(outcome, Ran)
    assert outcome.slot is not None
    assert outcome.slot > outcome.value  # now() had stood still before the slot had begun


def test_the_duration_is_of_the_databases_clock(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: time.sleep(0.3))
    outcome = world.run("digest")
    assert isinstance(outcome, Ran)
    assert outcome.duration is not None
    assert outcome.duration >= timedelta(seconds=0.3)
    kept = world.database.value("SELECT finished_at - started_at FROM cronlock_run")
    assert kept == outcome.duration


def test_early_hits_are_for_the_coming_slot(make_world: Callable[..., World]) -> None:
    """With half the interval as EARLY, the slot is the nearest one, never one further ahead."""
    world = make_world(CRONLOCK_EARLY="1d")
    world.cron.job("digest", every="10s")(lambda: None)
    outcome = world.run("digest")
    started = world.database.value("SELECT started_at FROM cronlock_run")
    assert isinstance(outcome, Ran)
    assert outcome.slot is not None
    assert abs(outcome.slot - started) <= timedelta(seconds=5)


def test_without_a_policy_a_slot_is_over_when_the_next_begins(world: World) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    before = newest_slot(world) - timedelta(days=1000)

    assert reason_of(world.run("digest", slot=before)) is Reason.TOO_LATE
    assert world.marks == 0
    assert world.runs() == world.attempts() == []


def test_with_max_lateness_an_older_slot_may_be_named_and_runs_once(world: World) -> None:
    slots = []
    world.cron.job("digest", every=LONG, max_lateness="2001d")(lambda run: slots.append(run.slot))
    before = newest_slot(world) - timedelta(days=1000)

    value_of(world.run("digest", slot=before))
    value_of(world.run("digest"))
    assert reason_of(world.run("digest", slot=before)) is Reason.ALREADY_RAN
    older = before - timedelta(days=1000 * 2)
    assert reason_of(world.run("digest", slot=older)) is Reason.TOO_LATE
    assert slots == [before, newest_slot(world)]


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "UTC"])
def test_a_slot_named_in_another_zone_is_the_same_slot(world: World, zone: str) -> None:
    world.cron.job("digest", every=LONG)(lambda: None)
    value_of(world.run("digest", slot=newest_slot(world).astimezone(ZoneInfo(zone))))
    assert reason_of(world.run("digest")) is Reason.ALREADY_RAN


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda slot: slot + timedelta(minutes=3), "not on the schedule"),
        (lambda slot: slot + timedelta(seconds=6), "not on the schedule"),
        (lambda slot: slot + timedelta(days=1000), "in the future"),
        (lambda slot: slot.replace(tzinfo=None), "no offset"),
    ],
)
def test_what_is_no_slot_is_refused_and_nothing_is_written(
    world: World, change: Callable[[datetime], datetime], words: str
) -> None:
    world.cron.job("digest", every=LONG)(world.mark)

    with pytest.raises(SlotError, match=words):
        world.run("digest", slot=change(newest_slot(world)))

    assert world.marks == 0
    assert world.runs() == world.attempts() == []
    value_of(world.run("digest"))


def test_forced_runs_use_up_no_slot_and_never_conflict(world: World) -> None:
    world.cron.job("digest", every=LONG)(world.mark)

    for _ in range(2):
        value_of(world.run("digest", force=True))
    value_of(world.run("digest"))
    value_of(world.run("digest", force=True))
    assert reason_of(world.run("digest")) is Reason.ALREADY_RAN

    keys = [key for _, key, _ in world.runs()]
    assert len([key for key in keys if key]) == 1
    assert world.marks == 4


def test_forced_runs_never_overlap(world: World) -> None:
    inside: list[Any] = []

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        inside.append(elsewhere(lambda: world.run("digest", force=True)))

    value_of(world.run("digest", force=True))
    assert reason_of(inside[0]) is Reason.ALREADY_RUNNING


def test_a_forced_run_minds_neither_pause_nor_lateness(world: World) -> None:
    world.cron.job("digest", every=LONG)(world.mark)
    world.database.query(
        "INSERT INTO cronlock_job (namespace, job, paused_at) VALUES ('', 'digest', now())"
    )
    before = newest_slot(world) - timedelta(days=1000)

    outcome = world.run("digest", slot=before, force=True)

    assert isinstance(outcome, Ran)
    assert outcome.slot == before


def test_a_job_without_a_schedule_runs_whenever_it_is_asked_but_never_twice_at_once(
    world: World,
) -> None:
    inside: list[Any] = []

    @world.cron.job
    def warm_cache(run: Run) -> None:
        assert run.slot is run.previous_slot is run.next_slot is None
        inside.append(elsewhere(lambda: world.run("warm-cache")))

    first = world.run("warm-cache")
    assert isinstance(first, Ran)
    assert first.slot is None
    assert isinstance(inside[0], Skipped)
    inside.clear()
    answer = world.post("warm-cache")
    assert (answer.json["outcome"], answer.json["slot"]) == ("ran", None)
    assert world.runs() == [("warm-cache", None, "done")] * 2

    with pytest.raises(SlotError, match="no schedule"):
        world.run("warm-cache", slot=datetime(2024, 1, 1, tzinfo=UTC))
