"""An app with a database of its own, and a probe that sees how often job code ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock, Outcome

from .databases import Database

SECRET = "a-secret-for-the-tests-only"


class World:
    """``db``, ``cron`` and ``app``, with all tables made.

    ``mark()`` counts on a connection of its own, so what it counted survives a rollback; ``note``
    is a table for the job's own writes. *prepare* sets up what is to be there before ``cron``.
    """

    def __init__(
        self,
        database: Database,
        url: str | None = None,
        engine_options: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        prepare: Callable[[Flask], object] | None = None,
        db: SQLAlchemy | None = None,
        **config: Any,
    ) -> None:
        self.database = database
        self.db = db or SQLAlchemy()
        self.cron = CronLock(self.db, **(settings or {}))
        self.app = Flask("world")
        self.app.config.update(
            SQLALCHEMY_DATABASE_URI=url or database.url,
            SQLALCHEMY_ENGINE_OPTIONS=engine_options or {},
            **{"CRONLOCK_SECRET": SECRET, **config},
        )
        self.db.init_app(self.app)
        if prepare is not None:
            prepare(self.app)
        self.cron.init_app(self.app)
        self.probe = database.connect()

    def create_tables(self) -> None:
        result = self.app.test_cli_runner().invoke(args=["cron", "init-db"])
        assert result.exit_code == 0, result.output
        self.probe.execute("CREATE TABLE IF NOT EXISTS mark (job text, at timestamptz)")
        self.probe.execute("CREATE TABLE IF NOT EXISTS note (text text)")

    def mark(self, job: str = "job") -> None:
        self.probe.execute("INSERT INTO mark VALUES (%s, clock_timestamp())", [job])

    @property
    def marks(self) -> int:
        """How often job code ran, whatever became of it."""
        return int(self.database.value("SELECT count(*) FROM mark"))

    def note(self, text: str) -> None:
        """Write through ``db.session``, as a job does."""
        self.db.session.execute(self.db.text("INSERT INTO note VALUES (:text)"), {"text": text})

    @cached_property
    def note_class(self) -> Any:
        """The table ``note`` as a model."""

        class Note(self.db.Model):  # type: ignore[name-defined, misc]
            __table__ = self.db.Table(
                "note", self.db.metadata, self.db.Column("text", self.db.Text, primary_key=True)
            )

        return Note

    @property
    def notes(self) -> list[str]:
        """What is committed."""
        return [row[0] for row in self.database.query("SELECT text FROM note ORDER BY text")]

    def run(self, name: str, **how: Any) -> Outcome:
        with self.app.app_context():
            return self.cron.run(name, **how)

    def post(self, name: str, secret: str = SECRET, **how: Any) -> Any:
        """Call the endpoint as a scheduler does."""
        headers = {"Authorization": f"Bearer {secret}"}
        return self.app.test_client().post(f"/api/cron/{name}", headers=headers, **how)

    def runs(self) -> list[tuple[Any, ...]]:
        """Return job, slot key and state of each row in the ledger."""
        return self.database.query(
            "SELECT job, slot_key, state FROM cronlock_run ORDER BY started_at"
        )

    def attempts(self) -> list[tuple[Any, ...]]:
        """Return job and error of each failed attempt."""
        return self.database.query("SELECT job, error FROM cronlock_attempt ORDER BY started_at")

    def close(self) -> None:
        self.probe.close()
        with self.app.app_context():
            for engine in self.db.engines.values():
                engine.dispose()


@contextmanager
def bare_world(database: Database, **how: Any) -> Iterator[World]:
    """Yield a world whose tables nobody made."""
    with closing(World(database, **how)) as world:
        yield world


@contextmanager
def world_on(database: Database, **how: Any) -> Iterator[World]:
    with bare_world(database, **how) as world:
        world.create_tables()
        yield world
