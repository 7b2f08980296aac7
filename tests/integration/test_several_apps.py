"""Several apps: one extension object, one database, one process."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Reason
from flask_cronlock.exceptions import ConfigError

from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, elsewhere, reason_of, value_of
from ..support.worlds import SECRET, World

pytestmark = pytest.mark.shared_database


def test_namespaces_and_the_bare_one_share_a_database_and_run_side_by_side(
    make_world: Callable[..., World],
) -> None:
    prod, *others = (make_world(CRONLOCK_NAMESPACE=name) for name in ("prod", "stage", None))
    inside: list[Any] = []
    for world in others:
        world.cron.job("digest", every=LONG)(world.mark)

    @prod.cron.job("digest", every=LONG)
    def digest() -> None:
        inside.extend(elsewhere(lambda: [world.run("digest") for world in others]))
        prod.mark()

    value_of(prod.run("digest"))

    for outcome in inside:
        value_of(outcome)
    assert prod.marks == 3
    for world in (prod, *others):
        assert reason_of(world.run("digest")) is Reason.ALREADY_RAN


@pytest.mark.parametrize("namespace", [None, "shared"])
def test_two_apps_in_one_namespace_run_a_slot_once_and_are_warned_of_each_other(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture, namespace: str | None
) -> None:
    one, two = make_world(CRONLOCK_NAMESPACE=namespace), make_world(CRONLOCK_NAMESPACE=namespace)
    two.app.name = "another"
    for world in (one, two):
        world.cron.job("digest", every=LONG)(world.mark)

    value_of(one.run("digest"))
    assert reason_of(one.run("digest")) is Reason.ALREADY_RAN
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    assert reason_of(two.run("digest")) is Reason.ALREADY_RAN
    [warning] = [r for r in caplog.records if r.__dict__.get("action") == "namespace_shared"]
    assert "CRONLOCK_NAMESPACE" in warning.getMessage()
    assert one.marks == 1


def make_app(db: SQLAlchemy, cron: CronLock, database: Database, **config: Any) -> Flask:
    app = Flask(config.pop("name", "app"))
    app.config.update(SQLALCHEMY_DATABASE_URI=database.url, CRONLOCK_SECRET=SECRET, **config)
    db.init_app(app)
    cron.init_app(app)
    app.test_cli_runner().invoke(args=["cron", "init-db"])
    return app


def test_one_extension_object_serves_several_apps_each_with_its_own_settings(
    postgres: Server,
) -> None:
    db = SQLAlchemy()
    cron = CronLock(db)
    zones: list[Any] = []

    @cron.job("digest", schedule="0 7 * * *", max_lateness="3d")
    def digest(run: Any) -> str:
        zones.append(str(run.slot.tzinfo))
        return str(db.engine.url.database)

    with fresh_database(postgres) as first, fresh_database(postgres) as second:
        one = make_app(db, cron, first, CRONLOCK_TIMEZONE="Europe/Berlin")
        two = make_app(db, cron, second, CRONLOCK_TIMEZONE="Asia/Tokyo")
        for app, database in ((one, first), (two, second)):
            with app.app_context():
                assert value_of(cron.run("digest")) == database.name
                assert app.extensions["cronlock"] is cron
        for app in (one, two):
            with app.app_context():
                db.engine.dispose()
    assert zones == ["Europe/Berlin", "Asia/Tokyo"]


def test_a_second_init_app_is_refused_with_a_cure(world: World) -> None:
    with pytest.raises(ConfigError, match="has a CronLock already; import that one"):
        world.cron.init_app(world.app)
    with pytest.raises(ConfigError, match="has a CronLock already; import that one"):
        CronLock(world.db, world.app)


def test_an_app_without_its_database_is_refused_with_a_cure() -> None:
    with pytest.raises(ConfigError, match=r"db\.init_app\(app\) before cron\.init_app\(app\)"):
        CronLock(SQLAlchemy(), Flask("app"))


def test_an_app_that_was_not_set_up_is_refused_with_a_cure(world: World) -> None:
    with Flask("other").app_context(), pytest.raises(ConfigError, match=r"cron\.init_app\(app\)"):
        world.cron.run("digest")
    stranger = CronLock(SQLAlchemy())
    with world.app.app_context(), pytest.raises(ConfigError, match="another CronLock"):
        stranger.run("digest")


def test_no_reference_keeps_an_app_alive(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A log handler that keeps its records keeps tracebacks, and so what their frames hold.
    monkeypatch.setattr(logging.getLogger("flask_cronlock"), "disabled", True)
    db = SQLAlchemy()
    cron = CronLock(db)
    cron.job("digest", every=LONG)(lambda: None)
    cron.job("bad", every=LONG)(lambda: 1 / 0)

    def use() -> weakref.ref[Flask]:
        app = make_app(db, cron, database)
        headers = {"Authorization": f"Bearer {SECRET}"}
        for name in ("digest", "digest", "bad"):
            app.test_client().post(f"/api/cron/{name}", headers=headers)
        with app.app_context():
            value_of(cron.with_lock("cache", lambda session: None))
            db.engine.dispose()
        return weakref.ref(app)

    app = use()
    gc.collect()
    assert app() is None
