"""A job that was given another name is the same job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_cronlock import Ran, Reason
from flask_cronlock.exceptions import RegistrationError

from ..support.outcomes import LONG, elsewhere, reason_of
from ..support.worlds import World


def old_release(world: World) -> World:
    world.cron.job("digest", every=LONG)(lambda: world.mark())
    return world


def new_release(world: World) -> World:
    names = ["digest", "mail-digest"]
    world.cron.job("daily-digest", every=LONG, previous_names=names)(lambda: world.mark())
    return world


def test_a_slot_that_ran_under_the_old_name_has_run(make_world: Callable[..., World]) -> None:
    old, new = old_release(make_world()), new_release(make_world())

    assert isinstance(old.run("digest"), Ran)

    assert reason_of(new.run("daily-digest")) is Reason.ALREADY_RAN
    assert new.post("digest").get_json()["reason"] == "already ran"
    assert new.post("mail-digest").get_json()["reason"] == "already ran"
    assert new.marks == 1


def test_a_slot_that_ran_under_the_new_name_has_run_for_the_old_release(
    make_world: Callable[..., World],
) -> None:
    old, new = old_release(make_world()), new_release(make_world())

    assert new.post("daily-digest").get_json()["job"] == "daily-digest"

    assert reason_of(old.run("digest")) is Reason.ALREADY_RAN


def test_the_old_release_that_is_running_keeps_the_new_one_out(
    make_world: Callable[..., World],
) -> None:
    new = new_release(make_world())
    old = make_world()

    @old.cron.job("digest", every=LONG)
    def digest() -> None:
        assert reason_of(elsewhere(lambda: new.run("daily-digest"))) is Reason.ALREADY_RUNNING
        told = elsewhere(lambda: new.app.test_cli_runner().invoke(args=["cron", "holders"]))
        assert "daily-digest" in told.output

    assert isinstance(old.run("digest"), Ran)


@pytest.mark.parametrize("names", [["daily-digest"], ["Digest"], [1], ["taken"]])
def test_names_that_it_cannot_have_had_are_refused(world: World, names: list[str]) -> None:
    world.cron.job("taken")(lambda: None)

    with pytest.raises(RegistrationError, match="daily-digest"):
        world.cron.job("daily-digest", previous_names=names)(lambda: None)


def test_it_is_listed_once(world: World) -> None:
    new_release(world)

    told = world.app.test_cli_runner().invoke(args=["cron", "list"])

    assert told.output.count("digest") == 1
