"""An item's key: the same however, and however often, the same thing is deferred."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from flask_cronlock import Failed, Item, Run

from ..support.outcomes import LONG, value_of
from ..support.tasks import Shared, records, rows, work, work_all
from ..support.worlds import World

pytestmark = pytest.mark.shared_database

KEYS: list[str] = []


@pytest.fixture(scope="module")
def shared(module_world: World) -> Shared:
    module_world.cron.task("send")(lambda item, n: KEYS.append(item.key))
    return Shared(module_world)


@pytest.fixture
def world(shared: Shared) -> World:
    shared.world.database.emptied()
    return shared.world


@pytest.fixture
def keys() -> list[str]:
    """The keys of all that was sent."""
    KEYS.clear()
    return KEYS


NUMBERS = select(func.generate_series(1, 3).label("n"))
WAYS: dict[str, Callable[[Run], object]] = {
    "one by one": lambda run: [run.defer("send", n=n) for n in (1, 2, 3)],
    "many": lambda run: run.defer_many("send", [{"n": n} for n in (1, 2, 3)]),
    "in batches": lambda run: run.defer_many("send", [{"n": n} for n in (3, 1, 2)], batch=2),
    "by a statement": lambda run: run.defer_from("send", NUMBERS),
    "by a statement in batches": lambda run: run.defer_from("send", NUMBERS, batch=2),
}


def test_it_does_not_depend_on_how_a_slot_deferred_it(
    world: World, shared: Shared, keys: list[str]
) -> None:
    found = {}
    for name, way in WAYS.items():
        world.database.emptied()
        keys.clear()
        value_of(shared.digest(way))
        work_all(world)
        found[name] = sorted(keys)
    assert all(len(them) == 3 for them in found.values())
    assert len({tuple(them) for them in found.values()}) == 1


def test_an_item_that_a_slot_defers_twice_is_done_once(
    world: World, shared: Shared, keys: list[str]
) -> None:
    def twice(run: Run) -> None:
        for way in WAYS.values():
            way(run)

    value_of(shared.digest(twice))
    work_all(world)
    assert len(keys) == len(set(keys)) == 3


def test_a_slot_that_failed_and_runs_again_gives_the_same_keys(
    world: World, shared: Shared, keys: list[str]
) -> None:
    def failing(run: Run) -> None:
        run.defer("send", n=1)
        seen.append(run.id)
        if len(seen) == 1:
            raise ValueError("after all")

    seen: list[object] = []
    assert isinstance(shared.digest(failing), Failed)
    value_of(shared.digest(failing))
    assert seen[0] != seen[1]
    [row] = rows(world)
    assert str(seen[1]) not in str(row.args)
    work(world, row)
    assert keys == [f'/{row.args["origin"]["scope"]}/send/{{"n": 1}}']


def test_a_redelivery_has_the_same_key_and_another_attempt(world: World) -> None:
    attempts: list[tuple[str, int]] = []

    @world.cron.task("flaky", attempts=3)
    def flaky(item: Item, n: int) -> None:
        attempts.append((item.key, item.attempt))
        if len(attempts) < 3:
            raise ValueError("not yet")

    with world.app.app_context():
        world.cron.defer(world.db.session, "flaky", n=1)
        world.db.session.commit()
    work_all(world)
    assert [attempt for _, attempt in attempts] == [1, 2, 3]
    assert len({key for key, _ in attempts}) == 1
    assert records(world) == [("done", 3, False)]


def test_forced_runs_have_keys_of_their_own(world: World, shared: Shared, keys: list[str]) -> None:
    def body(run: Run) -> None:
        run.defer("send", n=1)

    value_of(shared.digest(body))
    for _ in range(2):
        value_of(shared.digest(body, force=True))
    work_all(world)
    assert len(keys) == len(set(keys)) == 3


def test_a_renamed_job_keeps_its_keys(
    make_world: Callable[..., World],
) -> None:
    found = []
    for name, previous in (("digest", []), ("daily-digest", ["digest"])):
        world = make_world()
        world.database.emptied()
        world.cron.task("send")(lambda item, n: found.append(item.key))
        world.cron.job(name, every=LONG, previous_names=previous)(
            lambda run: run.defer("send", n=1)
        )
        value_of(world.run(name))
        work_all(world)
    assert len(found) == 2
    assert len(set(found)) == 1


def test_what_key_names_makes_an_item_and_the_rest_does_not(world: World) -> None:
    sent: list[tuple[int, str]] = []

    @world.cron.task("mail", key="user_id")
    def mail(user_id: int, name: str) -> None:
        sent.append((user_id, name))

    with world.app.app_context():
        items = [
            {"user_id": 1, "name": "Ada"},
            {"user_id": 1, "name": "Ada L."},
            {"user_id": 2, "name": "Grace"},
        ]
        world.cron.defer_many(world.db.session, "mail", items)
        world.db.session.commit()
    work_all(world)
    assert sent == [(1, "Ada"), (2, "Grace")]


def test_two_namespaces_in_one_database_have_nothing_in_common(
    make_world: Callable[..., World],
) -> None:
    worlds = [make_world(CRONLOCK_NAMESPACE=name) for name in ("shop", "blog")]
    for world in worlds:
        world.cron.task("send")(world.note)
        world.cron.job("digest", every=LONG)(lambda run: run.defer("send", text="a"))
        value_of(world.run("digest"))
    found = {row.queue: row for row in rows(worlds[0])}
    assert sorted(found) == ["blog.default", "shop.default"]
    for world in worlds:
        work(world, found[f"{world.app.config['CRONLOCK_NAMESPACE']}.default"])
        assert world.notes == ["a"] * (worlds.index(world) + 1)
    assert sorted(records(worlds[0], "namespace")) == ["blog", "shop"]


def test_a_key_fits_its_column_whatever_the_arguments_are(world: World) -> None:
    long = "\U0001f600" * 50_000
    world.cron.task("far")(lambda text: world.note(str(len(text))))
    with world.app.app_context():
        world.cron.defer(world.db.session, "far", text=long)
        world.db.session.commit()
    [row] = rows(world)
    work(world, row)
    assert world.notes == ["50000"]
    assert len(records(world, "key")[0]) < 200
