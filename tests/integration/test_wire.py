"""The wire that the other tests cut sees each message of the protocol."""

from __future__ import annotations

import socket
from typing import Any

import psycopg
import pytest

from ..support.databases import Database
from ..support.wire import wire_before, wire_to
from ..support.wire_figures import adding_nothing, open_here
from ..support.wire_line import Cut
from ..support.wire_messages import Side
from ..support.wire_tally import Tally

SIMPLE = Tally(frontend=1, backend=4, round_trips=1)
"""Query; RowDescription, DataRow, CommandComplete, ReadyForQuery."""


def connect(database: Database, host: str, port: int, sslmode: str) -> psycopg.Connection[Any]:
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


def test_the_messages_around_a_text_are_those_of_its_exchange(database: Database) -> None:
    with wire_before(database) as wire, connect(database, *wire.address, "disable") as connection:
        wire.count()
        for number in range(3):
            connection.execute(f"SELECT 'number {number}'")
        asked, *answers = wire.tally.places(b"number 1")
        assert asked == (Side.FRONTEND, 2)
        assert answers == [(Side.BACKEND, number) for number in (5, 6, 7, 8)]
        assert len(wire.tally.places()) == 15


def test_nothing_is_left_open_of_connections_that_are_over(database: Database) -> None:
    with wire_before(database) as wire, adding_nothing(open_here):
        for cut in (Cut.BEFORE, Cut.AFTER):
            connection = connect(database, *wire.address, "disable")
            wire.cut_at(b"SELECT", cut)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
            connect(database, *wire.address, "disable").close()


def test_a_server_that_was_away_is_connected_to_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    with wire_to(address) as wire:
        with socket.create_connection(wire.address, 20) as refused:
            assert refused.recv(1) == b""
        with socket.create_server(address) as server, socket.create_connection(wire.address, 20):
            server.settimeout(20)
            server.accept()[0].close()
