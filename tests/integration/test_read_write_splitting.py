"""An app whose session sends reads to a replica: a run there would not see what it locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import column, delete, select, table, text

from flask_cronlock import Ran
from flask_cronlock.exceptions import ForeignEngine, SplitSession

from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, error_of, value_of
from ..support.splitters import ByClause, ByModels, ByReads, ByTable, ByWrites, Minding
from ..support.worlds import World, bare_world

pytestmark = pytest.mark.shared_database

Deed = Callable[[World], Any]


@pytest.fixture
def replica(postgres: Server) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        made.query("CREATE TABLE note (text text PRIMARY KEY)")
        made.query("INSERT INTO note VALUES ('of the replica')")
        yield made


@pytest.fixture
def split_by(
    make_world: Callable[..., World], database: Database, replica: Database
) -> Iterator[Callable[..., World]]:
    make_world()  # `flask cron init-db` takes a lock, and is refused like any other
    with ExitStack() as stack:

        def make(kind: type[Session]) -> World:
            db = SQLAlchemy(session_options={"class_": kind})
            how: dict[str, Any] = {"db": db, "SQLALCHEMY_BINDS": {"replica": replica.url}}
            return stack.enter_context(bare_world(database, **how))

        yield make


def notes_read_by_model(world: World) -> list[str]:
    return [note.text for note in world.db.session.scalars(select(world.note_class))]


@pytest.mark.parametrize("kind", [ByWrites, ByReads])
def test_reads_from_a_replica_are_refused_before_the_job(
    split_by: Callable[..., World], kind: type[Session]
) -> None:
    world = split_by(kind)
    world.cron.job("digest", every=LONG)(world.mark)

    error = error_of(world.run("digest"))

    assert isinstance(error, SplitSession)
    assert "return db.engine from get_bind()" in str(error)
    assert world.post("digest").status_code == 500
    with world.app.app_context(), pytest.raises(SplitSession):
        world.cron.with_lock("cache", lambda _: world.mark())
    assert world.marks == 0
    assert world.runs() == []
    assert world.database.advisory_locks() == 0


def test_a_single_read_from_a_replica_is_refused_where_it_is_made(
    split_by: Callable[..., World],
) -> None:
    world = split_by(ByModels)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.note("gone")
        notes_read_by_model(world)

    assert isinstance(error_of(world.run("digest")), SplitSession)
    assert world.notes == []


def test_a_read_that_writes_too_is_refused_as_a_read(split_by: Callable[..., World]) -> None:
    world = split_by(ByModels)
    gone = delete(table("note", column("text"))).cte()

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session.execute(select(world.note_class).add_cte(gone))

    assert isinstance(error_of(world.run("digest")), SplitSession)


def test_a_session_that_minds_runs_reads_what_the_run_wrote(
    split_by: Callable[..., World],
) -> None:
    world = split_by(Minding)

    @world.cron.job("digest", every=LONG)
    def digest() -> list[str]:
        world.note("written")
        return notes_read_by_model(world)

    assert value_of(world.run("digest")) == ["written"]
    with world.app.app_context():
        assert world.db.session.scalar(text("SELECT text FROM note")) == "of the replica"


def test_an_engine_that_the_statement_names_is_the_jobs_own_choice(
    split_by: Callable[..., World],
) -> None:
    world = split_by(Session)

    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        there = {"bind": world.db.engines["replica"]}
        return world.db.session.scalar(text("SELECT text FROM note"), bind_arguments=there)

    assert value_of(world.run("digest")) == "of the replica"


def test_a_model_whose_reads_and_writes_go_elsewhere_together_is_another_bind(
    split_by: Callable[..., World],
) -> None:
    world = split_by(ByTable)

    @world.cron.job("digest", every=LONG)
    def digest() -> list[str]:
        return notes_read_by_model(world)

    assert value_of(world.run("digest")) == ["of the replica"]


def test_a_session_that_knows_no_engine_before_the_job_is_asked_again_in_it(
    split_by: Callable[..., World],
) -> None:
    class Later(Session):
        begun = False

        def get_bind(self, *args: Any, **kwargs: Any) -> Any:
            if not self.begun:
                raise LookupError("no tenant yet")
            return super().get_bind(*args, **kwargs)

    world = split_by(Later)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        world.db.session().begun = True
        world.note("kept")

    assert isinstance(world.run("digest"), Ran)
    assert world.notes == ["kept"]


def test_a_table_whose_reads_and_writes_go_elsewhere_together_is_another_bind(
    split_by: Callable[..., World],
) -> None:
    world = split_by(ByClause)

    @world.cron.job("digest", every=LONG)
    def digest() -> list[str]:
        return list(world.db.session.scalars(select(table("note", column("text")))))

    assert value_of(world.run("digest")) == ["of the replica"]


def test_the_primary_that_a_statement_names_is_the_runs_own_connection(
    split_by: Callable[..., World],
) -> None:
    world = split_by(ByModels)
    note = world.note_class

    @world.cron.job("digest", every=LONG)
    def digest() -> list[str]:
        world.note("written")
        ours = {"bind": world.db.engine}
        return list(world.db.session.scalars(select(note.text), bind_arguments=ours))

    assert value_of(world.run("digest")) == ["written"]


def test_a_session_whose_get_bind_takes_no_engine_gives_the_one_that_is_named(
    split_by: Callable[..., World],
) -> None:
    world = split_by(ByClause)

    @world.cron.job("digest", every=LONG)
    def digest() -> Any:
        there = {"bind": world.db.engines["replica"]}
        named = world.db.session.connection(bind_arguments=there)
        return named.scalar(text("SELECT text FROM note"))

    assert value_of(world.run("digest")) == "of the replica"


def test_a_connection_of_the_jobs_own_is_not_taken_for_the_runs(
    split_by: Callable[..., World],
) -> None:
    world = split_by(Session)

    @world.cron.job("digest", every=LONG)
    def digest() -> None:
        with world.db.engine.connect() as other:
            world.db.session.execute(text("SELECT 1"), bind_arguments={"bind": other})

    assert isinstance(error_of(world.run("digest")), ForeignEngine)
