"""Writes to the run's database that are apart from the run."""

from __future__ import annotations

from sqlalchemy import text

from .worlds import World

WRITE = text("INSERT INTO note VALUES ('outside')")


def in_a_context(world: World) -> None:
    with world.app.app_context():
        world.db.session.execute(WRITE)
        world.db.session.commit()


def on_a_connection(world: World) -> None:
    with world.db.engine.begin() as connection:
        connection.execute(WRITE)
