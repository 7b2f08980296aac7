"""An app whose session sends reads to a replica: a run there would not see what it locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session
from sqlalchemy import Delete, Insert, Update, select, text

from flask_cronlock import Ran
from flask_cronlock.exceptions import SplitSession

from ..support.databases import Database, Server, fresh_database
from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World, bare_world

Deed = Callable[[World], Any]


class ByWrites(Session):
    """Leads all but writes to the replica."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if self._flushing or isinstance(clause, Insert | Update | Delete):
            return self._db.engines[None]
        return self._db.engines["replica"]


class ByReads(Session):
    """Leads what is a SELECT to the replica."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if clause is not None and clause.is_select:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class ByModels(Session):
    """Leads reads of models to the replica, and all else not."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if mapper is not None and not self._flushing:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class Minding(ByWrites):
    """Knows of runs, as the error tells it to."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if "cronlock" in self.info:
            return Session.get_bind(self, mapper=mapper, clause=clause, **kwargs)
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


class ByTable(Session):
    """Leads one model, reads and writes, to another engine."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **kwargs: Any) -> Any:
        if mapper is not None:
            return self._db.engines["replica"]
        return super().get_bind(mapper=mapper, clause=clause, **kwargs)


@pytest.fixture
def database(emptied_database: Database) -> Database:
    return emptied_database


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
    class Note(world.db.Model):  # type: ignore[name-defined, misc]
        __table__ = world.db.Table(
            "note", world.db.metadata, world.db.Column("text", world.db.Text, primary_key=True)
        )

    return [note.text for note in world.db.session.scalars(select(Note))]


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
