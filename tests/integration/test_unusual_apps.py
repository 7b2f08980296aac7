"""Apps whose engine or session is not as it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import text
from sqlalchemy.pool import AssertionPool, SingletonThreadPool, StaticPool

from flask_cronlock import Ran
from flask_cronlock.exceptions import ConfigError, ForeignEngine

from ..support.databases import Database, fresh_database, temporary
from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World


def register(world: World) -> None:
    @world.cron.job("digest", every=LONG)
    def digest() -> str:
        world.note("from the job")
        world.db.session.commit()
        world.db.session.close()
        world.note("and again")
        return "done"


def test_a_session_scope_of_the_apps_own_keeps_the_callers_session(
    make_world: Callable[..., World],
) -> None:
    world = make_world(db=SQLAlchemy(session_options={"scopefunc": threading.get_ident}))
    register(world)

    with world.app.app_context():
        world.note("from the caller")
        session = world.db.session()
        assert isinstance(world.cron.run("digest"), Ran)
        assert isinstance(world.cron.with_lock("x", lambda _: None), Ran)
        assert world.db.session() is session
        world.db.session.commit()

    assert world.notes == ["and again", "from the caller", "from the job"]


@pytest.mark.parametrize("pool", [StaticPool, SingletonThreadPool, AssertionPool])
def test_a_pool_that_shares_its_connection_is_refused(database: Database, pool: Any) -> None:
    with closing(World(database, engine_options={"poolclass": pool})) as world:
        register(world)

        with pytest.raises(ConfigError, match="QueuePool or NullPool"):
            world.run("digest")


@pytest.mark.parametrize(
    "options",
    [{"autobegin": False}, {"close_resets_only": False}, {"twophase": True}, {"autoflush": False}],
    ids=str,
)
def test_session_options_of_the_app_do_not_end_a_run(
    make_world: Callable[..., World], options: dict[str, bool]
) -> None:
    world = make_world(db=SQLAlchemy(session_options=options))
    register(world)

    assert value_of(world.run("digest")) == "done"
    assert world.notes == ["and again", "from the job"]


def test_a_session_that_leads_to_a_variant_of_the_engine_fails_with_nothing_kept(
    make_world: Callable[..., World], database: Database
) -> None:
    class Tenants(Session):
        def get_bind(self, *args: Any, **kwargs: Any) -> Any:
            return self._db.engine.execution_options(logging_token="tenant")

    make_world()
    db = SQLAlchemy(session_options={"class_": Tenants})
    with closing(World(database, db=db)) as world:
        world.cron.job("digest", every=LONG)(lambda: world.note("outside"))

        assert isinstance(error_of(world.run("digest")), ForeignEngine)
        assert world.notes == []


def test_tables_in_a_translated_schema_are_found(database: Database) -> None:
    database.query("CREATE SCHEMA tenant")
    options = {"execution_options": {"schema_translate_map": {None: "tenant"}}}
    with closing(World(database, engine_options=options)) as world:
        world.create_tables()
        register(world)

        assert value_of(world.run("digest")) == "done"
        assert database.value("SELECT state FROM tenant.cronlock_run") == "done"


def test_a_date_style_of_the_databases_own_is_no_hindrance(
    database: Database, make_world: Callable[..., World]
) -> None:
    database.query(f"ALTER DATABASE {database.name} SET datestyle = 'SQL, DMY'")
    world = make_world()
    register(world)

    assert value_of(world.run("digest")) == "done"
    assert world.app.test_cli_runner().invoke(args=["cron", "holders"]).exit_code == 0


def test_a_role_without_rights_on_the_tables_is_told_what_to_grant(
    make_world: Callable[..., World], database: Database
) -> None:
    make_world()
    database.query("DO $$ BEGIN CREATE ROLE poor LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$")
    url = database.url.replace("//postgres@", "//poor@")
    with closing(World(database, url=url)) as world:
        register(world)

        answer = world.post("digest")
        told = world.app.test_cli_runner().invoke(args=["cron", "run", "digest"])

    assert (answer.status_code, answer.get_json()["error"]) == (503, "Rights missing")
    assert "GRANT SELECT, INSERT, UPDATE" in told.output


def test_a_job_that_gives_its_connection_away_leaves_no_setting_on_it(
    make_world: Callable[..., World],
) -> None:
    world = make_world(engine_options={"isolation_level": "AUTOCOMMIT", "pool_size": 1})

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session.connection().connection.close()

    error_of(world.run("digest"))
    with world.app.app_context(), world.db.engine.connect() as connection:
        connection.execute(text("INSERT INTO note VALUES ('by autocommit')"))

    assert world.notes == ["by autocommit"]


def test_a_prepared_transaction_that_holds_a_lock_is_listed() -> None:
    with (
        temporary({"max_prepared_transactions": "2"}) as server,
        fresh_database(server) as database,
        closing(World(database)) as world,
    ):
        world.create_tables()
        register(world)
        with database.connect() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('digest', 0))")
            connection.execute("PREPARE TRANSACTION 'left-over'")

        told = world.app.test_cli_runner().invoke(args=["cron", "holders"])
        answer = world.post("digest").get_json()
        database.query("ROLLBACK PREPARED 'left-over'")

    assert "digest" in told.output
    assert "pg_prepared_xacts" in told.output
    assert "pg_prepared_xacts" in answer["held_by"]


def test_commands_of_the_apps_own_named_cron_are_not_overwritten(database: Database) -> None:
    from flask import Flask
    from flask.cli import AppGroup

    from flask_cronlock import CronLock

    app = Flask("theirs")
    app.config["SQLALCHEMY_DATABASE_URI"] = database.url
    db = SQLAlchemy()
    db.init_app(app)
    app.cli.add_command(AppGroup("cron"))

    with pytest.raises(ConfigError, match="rename them"):
        CronLock(db, app)


def test_the_app_in_the_place_of_the_database_is_refused() -> None:
    from flask import Flask

    from flask_cronlock import CronLock

    with pytest.raises(ConfigError, match=r"CronLock\(db, app\)"):
        CronLock(Flask("app"))  # type: ignore[arg-type]
