"""A real PostgreSQL without an installation: started when asked for, gone with its last user.

url = database_url()            # DATABASE_URL, else a server of our own
with temporary() as server:     # a fresh server for tests
    connect(server.conninfo())
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import EmbeddedError

try:
    from .account import Account
    from .address import Address
    from .binaries import Binaries
    from .cluster import Cluster
    from .folders import data_folder
    from .throwaway import TemporaryServer, temporary
except ModuleNotFoundError as missing:
    raise EmbeddedError(f"No embedded PostgreSQL on {sys.platform}") from missing

__all__ = ["EmbeddedError", "TemporaryServer", "database_url", "ensure", "temporary"]


def database_url() -> str:
    """Return DATABASE_URL as it is, else the URL of the embedded server, started if need be."""
    return os.environ.get("DATABASE_URL", "").strip() or ensure()


def ensure(base: Path | None = None) -> str:
    """Return the URL of a running server that keeps its data below `base`.

    The server lives until the last process that asked for it has died, however it died, and the
    children those processes forked. The data stays. By default it lies in the user's state folder.
    """
    binaries = Binaries.find()
    account = Account.choose(base)
    try:
        folder = data_folder(base, account, binaries.major)
        cluster = Cluster(folder, binaries, account)
        cluster.hold()
        server = cluster.serve()
    except OSError as error:
        raise EmbeddedError(f"PostgreSQL does not start ({error})") from error
    return Address(server.sockets, server.port).url()
