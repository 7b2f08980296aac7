"""Several apps, or several environments of one, share a database."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from flask_cronlock import Ran, Skipped

from ..support.bodies import Gate, running
from ..support.worlds import World


def add_digest(world: World) -> World:
    @world.cron.job("digest", every="1d")
    def digest() -> None:
        world.note(world.app.config["CRONLOCK_NAMESPACE"] or "none")

    return world


def test_each_namespace_has_its_own_runs(make_world: Callable[..., World]) -> None:
    for namespace in ("prod", "stage", None):
        world = add_digest(make_world(CRONLOCK_NAMESPACE=namespace))
        assert isinstance(world.run("digest"), Ran)
        assert isinstance(world.run("digest"), Skipped)
    assert world.notes == ["none", "prod", "stage"]


def test_a_run_in_one_namespace_does_not_keep_another_from_running(
    make_world: Callable[..., World],
) -> None:
    gate = Gate()
    prod = make_world(CRONLOCK_NAMESPACE="prod")
    prod.cron.job("digest", every="1d")(gate.hold)
    stage = add_digest(make_world(CRONLOCK_NAMESPACE="stage"))
    with running(prod, "digest", gate) as outcome:
        assert isinstance(stage.run("digest"), Ran)
        assert not outcome.done()


@pytest.mark.parametrize("namespace", ["prod", None])
def test_two_apps_under_one_namespace_run_a_slot_once_and_are_warned(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture, namespace: str | None
) -> None:
    one = add_digest(make_world(CRONLOCK_NAMESPACE=namespace))
    other = add_digest(make_world(CRONLOCK_NAMESPACE=namespace))
    other.app.name = "other"
    assert isinstance(one.run("digest"), Ran)
    with caplog.at_level(logging.WARNING, "flask_cronlock"):
        assert isinstance(other.run("digest"), Skipped)
    assert len(one.notes) == 1
    [warning] = [r for r in caplog.records if getattr(r, "action", "") == "namespace_shared"]
    assert "CRONLOCK_NAMESPACE" in warning.getMessage()
