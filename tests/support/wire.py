"""A wire between an app and PostgreSQL that can be cut at one message."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .databases import Database

WISHES = (80877103, 80877104)
"""First messages that ask for TLS or GSSAPI; the true start-up message follows them."""


class Cut(enum.Enum):
    """What is lost."""

    BEFORE = "the message never reaches the server, and the connection breaks"
    AFTER = "the server has done what it says, and the connection breaks before its answer"
    SILENCE = "the message is swallowed, and neither side hears anything more"


@dataclass
class Line:
    """One client's connection."""

    client: socket.socket
    server: socket.socket
    cut: Cut | None = None

    def hang_up(self) -> None:
        for side in (self.client, self.server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.client.close()
        self.server.close()


@dataclass
class Wire:
    """A forwarding port before one server; :meth:`cut_at` arms one cut."""

    server: str
    listener: socket.socket
    refusing: bool = False
    """Every new connection is closed at once."""
    was_cut: threading.Event = field(default_factory=threading.Event)
    _armed: tuple[bytes, Cut, bool] | None = None
    _lines: list[Line] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def url(self, database: Database) -> str:
        host, port = self.listener.getsockname()
        options = "sslmode=disable&gssencmode=disable"
        return f"postgresql+psycopg://postgres@{host}:{port}/{database.name}?{options}"

    def cut_at(self, text: bytes, cut: Cut, refuse: bool = False) -> None:
        """Cut at the next client message that holds *text*, and *refuse* connections from then."""
        self.was_cut.clear()
        self._armed = (text, cut, refuse)

    def mend(self) -> None:
        """Let connections through again."""
        self.refusing = False

    def start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.refusing:
                    client.close()
                    continue
                line = Line(client, socket.socket(socket.AF_UNIX))
                self._lines.append(line)
                line.server.connect(self.server)
                self.start(self._forward, line)
                self.start(self._answer, line)

    def _forward(self, line: Line) -> None:
        """Carry what the client says, message by message."""
        started = False
        with contextlib.suppress(OSError):
            while message := _message(line.client, started):
                line.cut = self._disarm(message)
                if line.cut is Cut.SILENCE:
                    self.was_cut.set()
                    return
                if line.cut is Cut.BEFORE:
                    self.was_cut.set()
                    break
                line.server.sendall(message)
                started = started or struct.unpack("!I", message[4:8])[0] not in WISHES
        line.hang_up()

    def _answer(self, line: Line) -> None:
        """Carry what the server says."""
        with contextlib.suppress(OSError):
            while data := line.server.recv(65536):
                if line.cut is Cut.AFTER:
                    self.was_cut.set()
                    break
                if line.cut is None:
                    line.client.sendall(data)
        if line.cut is not Cut.SILENCE:
            line.hang_up()

    def _disarm(self, message: bytes) -> Cut | None:
        """Return the cut that is to be made at *message*; each is made once."""
        if self._armed is None or self._armed[0] not in message:
            return None
        _, cut, self.refusing = self._armed
        self._armed = None
        return cut

    def hang_up(self) -> None:
        """Break every connection."""
        for line in self._lines:
            line.hang_up()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.hang_up()
        for thread in self._threads:
            thread.join(10)
        for line in self._lines:
            line.close()


def _message(stream: socket.socket, started: bool) -> bytes:
    """Return one whole message: type (not before the start-up is over), length and body."""
    head = _read(stream, 5 if started else 4)
    return head and head + _read(stream, struct.unpack("!I", head[-4:])[0] - 4)


def _read(stream: socket.socket, size: int) -> bytes:
    """Return *size* bytes, or none at the end of the stream."""
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data


@contextmanager
def wire_before(database: Database) -> Iterator[Wire]:
    """Forward a free loopback port to the unix socket of *database*'s server."""
    server = database.server
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire(f"{server.socket_folder}/.s.PGSQL.{server.port}", listener)
        wire.start(wire.accept)
        try:
            yield wire
        finally:
            wire.close()
