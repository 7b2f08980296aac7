"""A test's own PostgreSQL is what it asked for, and is gone with the process that made it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import NullPool, create_engine, text

from sample_app.embedded import EmbeddedError, TemporaryServer, temporary

from ..support.processes import dead, wait_until

CHECKOUT = Path(__file__).parents[2]
MAKER = CHECKOUT / "tests" / "support" / "embedded_maker.py"


@pytest.fixture(scope="module")
def server() -> Iterator[TemporaryServer]:
    with temporary() as server:
        yield server


def query(server: TemporaryServer, statement: str, dbname: str = "postgres") -> object:
    with psycopg.connect(server.conninfo(dbname), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_it_stays_down_until_it_is_started_again_with_its_data(
    server: TemporaryServer, mode: str
) -> None:
    address = server.url()
    query(server, "create table if not exists kept ()")
    server.stop(mode)
    with pytest.raises(psycopg.OperationalError):
        query(server, "select 1")
    server.start()
    assert server.url() == address
    assert query(server, "select count(*) from kept") == 0


def test_an_unknown_way_to_stop_is_refused(server: TemporaryServer) -> None:
    with pytest.raises(ValueError, match="fast, immediate or kill"):
        server.stop("gently")


def test_it_has_the_settings_asked_for() -> None:
    with temporary({"max_connections": "17", "fsync": "on"}) as server:
        assert query(server, "show max_connections") == "17"
        assert query(server, "show fsync") == "on"
        assert query(server, "show synchronous_commit") == "off"
        assert query(server, "show listen_addresses") == ""


def test_a_setting_postgres_refuses_is_named() -> None:
    with pytest.raises(EmbeddedError, match="no_such_setting"), temporary({"no_such_setting": "1"}):
        pass


def test_over_tcp_it_listens_on_loopback_and_asks_for_the_password() -> None:
    with temporary(tcp=True) as server:
        assert server.host == "127.0.0.1"
        assert query(server, "show listen_addresses") == "127.0.0.1"
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.conninfo(), password="wrong")
        with create_engine(server.url(), poolclass=NullPool).connect() as connection:
            assert connection.scalar(text("select 1")) == 1
        address = server.url()
        server.stop()
        server.start()
        assert server.url() == address


def test_another_postgres_can_be_chosen() -> None:
    others = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"))
    if not others:
        pytest.skip("NOT TRIED: no system PostgreSQL in /usr/lib/postgresql")
    with temporary(bin=others[0]) as server:
        assert str(query(server, "show server_version")).startswith(others[0].parent.name)
        assert server.bin == others[0]


def test_a_folder_without_postgres_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=str(tmp_path)), temporary(bin=tmp_path):
        pass


def test_the_end_of_the_block_leaves_nothing() -> None:
    with temporary() as server:
        assert query(server, "select 1") == 1
    assert dead(server.pid)
    assert not server.data.parent.exists()
    assert not Path(server.socket_folder).exists()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_it_is_gone_with_the_process_that_made_it(signum: int) -> None:
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(
        [sys.executable, MAKER], env=environment, stdout=subprocess.PIPE, text=True
    ) as maker:
        pid, sockets, data = (maker.stdout.readline().strip() for _ in range(3))
        assert Path(data).exists()
        maker.send_signal(signum)
    wait_until(lambda: dead(int(pid)))
    wait_until(lambda: not Path(sockets).exists() and not Path(data).parent.exists())


def test_it_runs_as_an_account_that_is_not_root(server: TemporaryServer) -> None:
    who = subprocess.check_output(["id", "-u"], text=True, cwd="/", **server.run_as.options)
    assert int(who) == server.run_as.uid == server.data.stat().st_uid != 0
