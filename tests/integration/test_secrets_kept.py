"""A secret that a job returns, or that the database repeats, is blotted out wherever it goes."""

from __future__ import annotations

import json

import psycopg

from flask_cronlock.exceptions import DatabaseUnreachable
from flask_cronlock.telling import known_words

from ..support.outcomes import LONG, value_of
from ..support.worlds import SECRET, World


def test_a_value_is_kept_without_it(world: World) -> None:
    world.cron.job("digest", every=LONG)(lambda: f"Bearer {SECRET}")
    value_of(world.run("digest"))
    kept = world.database.value("SELECT value FROM cronlock_run")
    assert json.loads(kept) == "'Bearer [secret]'"


def test_what_the_database_said_is_told_without_it() -> None:
    error = DatabaseUnreachable()
    error.__cause__ = psycopg.OperationalError(f'no database "{SECRET}"')
    words = known_words(error, [SECRET.encode()])
    assert words is not None
    assert words.endswith('(OperationalError: no database "[secret]")')
