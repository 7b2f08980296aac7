"""A fresh PostgreSQL server for a test, gone with the process that made it."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from .account import Account
from .address import Address
from .binaries import Binaries
from .cluster import Cluster
from .errors import EmbeddedError
from .supervisor import STOPS, try_lock

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class TemporaryServer:
    """A running server of one's own; `run_as` is the account it runs as."""

    user = "postgres"

    def __init__(self, cluster: Cluster, password: str | None) -> None:
        self._cluster = cluster
        self._server = cluster.serve()
        self.password = password
        self.bin = cluster.binaries.bin
        self.run_as = cluster.account

    @property
    def data(self) -> Path:
        """Return the data folder."""
        return self._cluster.data

    @property
    def socket_folder(self) -> str:
        """Return the folder of the unix socket."""
        return self._server.sockets

    @property
    def host(self) -> str:
        """Return the address clients connect to: the socket's folder, or 127.0.0.1."""
        return "127.0.0.1" if self.password else self._server.sockets

    @property
    def port(self) -> int:
        """Return the port, which also is part of the unix socket's name."""
        return self._server.port

    @property
    def pid(self) -> int:
        """Return the postmaster's process id, as of the last start."""
        return self._server.pid

    @property
    def address(self) -> Address:
        """Return the whole address, with the password."""
        return Address(self.host, self.port, self.user, self.password)

    def url(self, dbname: str = "postgres") -> str:
        """Return the SQLAlchemy URL of a database."""
        return self.address.url(dbname)

    def conninfo(self, dbname: str = "postgres") -> str:
        """Return the libpq connection string of a database."""
        return self.address.conninfo(dbname)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server until `start`: `fast`, or as in a crash `immediate` or `kill`."""
        if mode not in STOPS:
            raise ValueError(f"mode is fast, immediate or kill, not {mode!r}")
        os.close(self.run_as.open(self._cluster.folder / f"stop-{mode}"))
        lock = self.run_as.open(self._cluster.folder / "server")
        while not try_lock(lock):
            time.sleep(0.01)
        os.close(lock)

    def start(self) -> None:
        """Start the server again with its data, at the same address."""
        for mode in STOPS:
            (self._cluster.folder / f"stop-{mode}").unlink(missing_ok=True)
        self._server = self._cluster.serve()


@contextmanager
def temporary(
    settings: Mapping[str, str] | None = None, bin: Path | None = None, tcp: bool = False
) -> Iterator[TemporaryServer]:
    """Run a fresh server in a temp folder, with `fsync` off, until the end of the block.

    `settings` are added to the server's own. `bin` names a folder of PostgreSQL programs. With
    `tcp` clients connect to 127.0.0.1 at a free port with a random password.
    """
    binaries = Binaries.inspect(bin) if bin else Binaries.find()
    if binaries is None:
        raise EmbeddedError(f"{bin} holds no PostgreSQL that runs here")
    account = Account.choose()
    folder = _folder(account)
    password = secrets.token_urlsafe(16) if tcp else None
    if password:
        _save(password, account.open(folder / "password"))
    wanted = FAST | (_network() if tcp else {}) | dict(settings or {})
    cluster = Cluster(folder, binaries, account, wanted, temporary=True)
    cluster.hold()
    try:
        yield TemporaryServer(cluster, password)
    finally:
        cluster.release()
        shutil.rmtree(folder, ignore_errors=True)


def _save(text: str, fd: int) -> None:
    with open(fd, "w") as file:
        file.write(text)


def _folder(account: Account) -> Path:
    own = Path(tempfile.gettempdir())
    parent = own if account.reaches(own) and account.reaches(own, "w") else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="cronlock-pg-", dir=parent))
    account.give(folder)
    return folder


def _network() -> dict[str, str]:
    """Choose a free port below those the kernel hands out: it stays free while we restart."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return {"listen_addresses": "127.0.0.1", "port": str(port)}
