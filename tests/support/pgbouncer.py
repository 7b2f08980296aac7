"""A real PgBouncer in transaction mode, in front of the suite's PostgreSQL; it can be restarted."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .databases import Database, Server
from .programs import require

PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


class PgBouncer:
    """Forwards every database of one server, and is at the same port whenever it is up."""

    def __init__(self, server: Server, binary: str, folder: Path, extra: dict[str, Any]) -> None:
        self.port = int(extra.get("listen_port", 0)) or _lasting_port()
        self._run_as, self._log = server.run_as, folder / "log"
        ini = folder / "pgbouncer.ini"
        ini.write_text(_settings(server, binary, folder, self.port, extra))
        for path in (folder, ini):
            server.run_as.give(path)
        self._command = [binary, str(ini)]
        self.start()

    def url(self, database: Database) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database.name}"

    def start(self) -> None:
        """Start it, and wait until it is there."""
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._run_as.options,
        )
        until = time.monotonic() + 10
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.stop()
        log = self._log.read_text() if self._log.exists() else "no log"
        pytest.fail(f"PgBouncer did not start: {log}")

    def stop(self) -> None:
        """Kill it, and all connections through it."""
        # Newer ones wait for clients at SIGTERM; older ones do not catch SIGQUIT, which whatever a
        # shell started in the background ignores.
        self.process.kill()
        self.process.wait()

    def restart(self, outage: float = 0.0) -> None:
        """Kill it, and start it again some seconds later."""
        self.stop()
        time.sleep(outage)
        self.start()


def find_pgbouncer() -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), *PLACES])
    return require(
        os.environ.get("PGBOUNCER") or shutil.which("pgbouncer", path=path) or _from_debian(),
        "CRONLOCK_REQUIRE_PGBOUNCER",
        "PgBouncer is missing: apt-get install pgbouncer, or set PGBOUNCER to its path",
    )


def _from_debian() -> str | None:
    """Unpack Debian's package and the libraries it needs into the cache folder, without root."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cronlock-tests"
    program = cache / "pgbouncer"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        try:
            _download(cache, program)
        except (OSError, subprocess.SubprocessError):
            return None
    runs = program.exists() and subprocess.run(
        [program, "--version"], capture_output=True, check=False
    )
    return str(program) if runs and runs.returncode == 0 else None


def _download(cache: Path, program: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    asked = ["apt-cache", "depends", "pgbouncer"]
    depends = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    packages = ["pgbouncer", *re.findall(r"Depends: (lib(?:event|c-?ares)\S*)", depends)]
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        for command in (
            ["apt-get", "download", *packages],
            ["sh", "-c", "for package in *.deb; do dpkg-deb -x $package .; done"],
        ):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
        shutil.copytree(Path(folder) / "usr", cache / "usr", symlinks=True, dirs_exist_ok=True)
    libraries = ":".join({str(path.parent) for path in cache.glob("usr/lib/**/*.so*")})
    program.write_text(
        f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{cache}/usr/sbin/pgbouncer" "$@"\n'
    )
    program.chmod(0o755)


def _lasting_port() -> int:
    """Choose a free port below those the kernel hands out: nobody gets it during a restart."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _version(binary: str) -> tuple[int, ...]:
    text = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", text)
    assert found, text
    return int(found[1]), int(found[2])


def _settings(server: Server, binary: str, folder: Path, port: int, extra: dict[str, Any]) -> str:
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": 2,
        "server_login_retry": 1,
        "logfile": folder / "log",
        **extra,
    }
    if _version(binary) >= (1, 21):
        # Newer ones keep track of prepared statements; the hazard is in those that do not.
        settings.setdefault("max_prepared_statements", 0)
    lines = "\n".join(f"{key} = {value}" for key, value in settings.items())
    forward = f"* = host={server.host} port={server.port} user={server.user}"
    return f"[databases]\n{forward}\n[pgbouncer]\n{lines}\n"


@contextmanager
def pgbouncer_before(server: Server, **extra: Any) -> Iterator[PgBouncer]:
    """Run PgBouncer in transaction mode with two backends a database, unless *extra* says else."""
    binary = find_pgbouncer()
    with tempfile.TemporaryDirectory(prefix="cronlock-pgb-") as folder:
        pooler = PgBouncer(server, binary, Path(folder), extra)
        try:
            yield pooler
        finally:
            pooler.stop()
