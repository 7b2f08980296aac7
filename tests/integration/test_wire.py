"""The wire that the other tests cut sees each message of the protocol."""

from __future__ import annotations

import psycopg
import pytest

from ..support.databases import Database
from ..support.wire import Cut, Tally, wire_before
from ..support.wire_messages import Side

SIMPLE = Tally(frontend=1, backend=4, round_trips=1)
"""Query; RowDescription, DataRow, CommandComplete, ReadyForQuery."""


def connect(database: Database, host: str, port: int, sslmode: str) -> psycopg.Connection[object]:
    return psycopg.connect(
        host=host,
        port=port,
        user="postgres",
        dbname=database.name,
        sslmode=sslmode,
        gssencmode="disable",
        autocommit=True,
    )


def test_a_wish_for_encryption_is_a_message_and_so_is_its_answer(database: Database) -> None:
    tallies = []
    for sslmode in ("disable", "prefer"):
        with wire_before(database) as wire, connect(database, *wire.address, sslmode):
            tallies.append(wire.tally)
            assert (wire.tally.frontend, wire.tally.round_trips) == (len(tallies), 1)
    plain, wished = tallies
    assert wished.backend == plain.backend + 1


def test_large_and_small_messages_are_counted(database: Database) -> None:
    with wire_before(database) as wire, connect(database, *wire.address, "disable") as connection:
        for size in (1, 1_000_000):
            wire.count()
            (found,) = connection.execute(f"SELECT repeat('x', {size})").fetchone() or ("",)
            assert len(str(found)) == size
            assert wire.tally == SIMPLE


@pytest.mark.parametrize("side", Side)
def test_only_the_armed_message_is_cut(database: Database, side: Side) -> None:
    with wire_before(database) as wire:
        connection = connect(database, *wire.address, "disable")
        wire.cut_message(side, 6 if side is Side.BACKEND else 2, Cut.BEFORE)
        connection.execute("SELECT 1")
        assert not wire.was_cut.is_set()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        assert wire.was_cut.is_set()
        connect(database, *wire.address, "disable").close()
