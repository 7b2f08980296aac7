"""The servers of a comparison: PostgreSQL, PgBouncer before it, and Redis."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sample_app.embedded import TemporaryServer
from tests.support.databases import Database
from tests.support.pgbouncer import PgBouncer, find_pgbouncer, pgbouncer_before

from .tools import find_redis

BACKENDS = 3
"""Of PgBouncer, for a database: as many as workers, and fewer than their connections."""
VICTIM = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
ORDER BY state = 'idle', pid LIMIT 1
"""


def pooler_before(server: TemporaryServer) -> AbstractContextManager[PgBouncer]:
    return pgbouncer_before(server, default_pool_size=BACKENDS)


def terminate_a_backend(database: Database) -> None:
    """End one that is at work, if any is, and else one that waits."""
    database.query(VICTIM)


@contextmanager
def redis_server() -> Iterator[str]:
    """Run Redis in a temporary folder; yield its socket, or nothing where it is not installed."""
    program = find_redis()
    if program is None:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="cronlock-redis-") as folder:
        socket = Path(folder) / "socket"
        options = f"--port 0 --unixsocket {socket} --dir {folder} --save".split()
        with subprocess.Popen([program, *options, ""], stdout=subprocess.DEVNULL) as process:
            try:
                until = time.monotonic() + 20
                while not socket.exists():
                    if process.poll() is not None or time.monotonic() > until:
                        raise RuntimeError("Redis did not start")
                    time.sleep(0.02)
                yield str(socket)
            finally:
                process.kill()


def versions(server: TemporaryServer) -> list[str]:
    """Return names and versions of the servers."""
    programs = {
        "PostgreSQL": str(server.bin / "postgres"),
        "PgBouncer": find_pgbouncer(),
        "Redis": find_redis(),
    }
    return [_version(name, program) for name, program in programs.items() if program]


def _version(name: str, program: str) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"\d+\.\d+(\.\d+)?", told)
    assert number, told
    return f"{name} {number[0]}"
