"""A run or a lock inside another is refused before it takes a connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

import pytest

from flask_cronlock import job_succeeded
from flask_cronlock.exceptions import NestedRun

from ..support.forks import forked
from ..support.locking import locked
from ..support.outcomes import LONG, elsewhere, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(engine_options=ONE)


def run_itself(world: World) -> Any:
    return world.cron.run("digest")


def run_another(world: World) -> Any:
    return world.cron.run("other", force=True)


def take_a_lock(world: World) -> Any:
    return world.cron.with_lock("cache", lambda session: world.mark("inner"))


def take_its_own_lock(world: World) -> Any:
    return world.cron.with_lock("digest", lambda session: world.mark("inner"), wait="10s")


def post(world: World) -> Any:
    answer = world.post("other")
    assert answer.json["error"] == "Nested run"
    raise NestedRun


INNER = [run_itself, run_another, take_a_lock, take_its_own_lock, post]


@pytest.mark.parametrize("inner", INNER)
def test_a_job_that_starts_another_fails_and_its_body_was_entered_once(
    world: World, inner: Callable[[World], Any]
) -> None:
    world.cron.job("other", every=LONG)(lambda: world.mark("inner"))

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.mark()
        inner(world)

    error = error_of(world.run("digest"))

    assert isinstance(error, NestedRun)
    assert "plain function" in str(error)
    assert world.marks == 1


@pytest.mark.parametrize("inner", INNER)
def test_a_job_that_minds_the_refusal_has_run(world: World, inner: Callable[[World], Any]) -> None:
    world.cron.job("other", every=LONG)(lambda: world.mark("inner"))

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.mark()
        with pytest.raises(NestedRun), world.app.app_context():
            inner(world)
        world.note("kept")

    value_of(world.run("digest"))
    assert world.marks == 1
    assert world.notes == ["kept"]


@pytest.mark.parametrize("inner", INNER)
def test_work_under_a_lock_starts_no_other(world: World, inner: Callable[[World], Any]) -> None:
    world.cron.job("other", every=LONG)(world.mark)
    world.cron.job("digest", every=LONG)(world.mark)

    with world.app.app_context(), pytest.raises(NestedRun):
        world.cron.with_lock("outer", lambda session: inner(world))

    assert world.marks == 0
    value_of(world.run("digest"))


def test_a_job_may_be_chained_when_the_first_one_has_ended(world: World) -> None:
    world.cron.job("first", every=LONG)(lambda: world.note("first"))
    world.cron.job("second", every=LONG)(lambda: world.note("second"))
    outcomes = []

    def chain(app: Any, job: str, **_: Any) -> None:
        if job == "first":
            outcomes.append(world.cron.run("second"))

    with job_succeeded.connected_to(chain, world.app):
        value_of(world.run("first"))

    value_of(outcomes[0])
    assert world.notes == ["first", "second"]


def test_two_jobs_in_two_threads_are_not_nested(make_world: Callable[..., World]) -> None:
    world = make_world()
    world.cron.job("inner", every=LONG)(lambda: world.note("inner"))
    world.cron.job("outer", every=LONG)(lambda: elsewhere(lambda: world.run("inner")))

    value_of(value_of(world.run("outer")))
    assert world.notes == ["inner"]


@pytest.mark.parametrize("again", [lambda world: world.run("inner"), take_a_lock])
def test_work_in_a_copy_of_a_runs_context_is_inside_it_until_it_ends(
    world: World, again: Callable[[World], Any]
) -> None:
    copies: list[Context] = []
    world.cron.job("inner", every=LONG)(lambda: world.mark("inner"))

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        copies.append(copy_context())
        with pytest.raises(NestedRun):
            copies[0].run(again, world)

    value_of(world.run("digest"))
    with world.app.app_context():
        value_of(locked(world, "cache", lambda _: copies.append(copy_context())))
        for copy in copies:
            copy.run(again, world)
    assert world.marks >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_of_a_job_is_not_inside_it(world: World) -> None:
    world.cron.job("inner", every=LONG)(lambda: world.note("inner"))

    def run_there() -> None:
        value_of(world.run("inner"))
        value_of(locked(world, "cache", lambda _: world.note("under a lock")))

    world.cron.job("outer", every=LONG)(lambda: forked(run_there)())

    value_of(world.run("outer"))
    assert world.notes == ["inner", "under a lock"]
