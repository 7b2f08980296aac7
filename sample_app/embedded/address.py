"""How a client reaches a server."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote


class Address(NamedTuple):
    """A host or a folder of sockets, a port, and the password if one is asked for."""

    host: str
    port: int
    user: str = "postgres"
    password: str | None = None

    def url(self, dbname: str = "postgres") -> str:
        """Return a SQLAlchemy URL for psycopg 3."""
        login = f"{self.user}:{quote(self.password, safe='')}" if self.password else self.user
        if "/" not in self.host:
            return f"postgresql+psycopg://{login}@{self.host}:{self.port}/{dbname}"
        # The port is named, or PGPORT in a client's environment would choose another socket.
        place = f"host={quote(self.host)}&port={self.port}"
        return f"postgresql+psycopg://{login}@/{dbname}?{place}"

    def conninfo(self, dbname: str = "postgres") -> str:
        """Return a libpq connection string."""
        words = {**self._asdict(), "dbname": dbname}
        return " ".join(f"{word}={_quoted(str(value))}" for word, value in words.items() if value)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
