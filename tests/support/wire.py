"""A wire between a client and PostgreSQL that can be broken at one message."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .databases import Database
from .wire_messages import READY, Framing, Side, asks_for_an_answer

HOLD_UP = 0.01
"""Seconds for which a message is held up."""


class Cut(enum.Enum):
    """What becomes of one message."""

    BEFORE = "it never arrives, and the connection breaks"
    AFTER = "it arrives, and the connection breaks before the answer, if it asks for one"
    SILENCE = "it is swallowed, and neither side hears anything more"
    STALL = "it comes late, and nothing breaks"


@dataclass(frozen=True)
class Armed:
    """The one message that is to be cut: the *number*-th of its *side*, or one with a *text*."""

    cut: Cut
    side: Side = Side.FRONTEND
    number: int = 0
    text: bytes = b""
    refuse: bool = False

    def hits(self, side: Side, number: int, message: bytes) -> bool:
        if side is not self.side:
            return False
        return number == self.number if self.number else self.text in message


@dataclass
class Tally:
    """How many messages went over the wire, and how many times an answer was waited for."""

    frontend: int = 0
    backend: int = 0
    round_trips: int = 0

    def add(self, side: Side, message: bytes) -> int:
        """Count *message*, and return which of its side's it is."""
        if side is Side.FRONTEND:
            self.frontend += 1
            return self.frontend
        self.backend += 1
        self.round_trips += message[:1] == READY
        return self.backend


@dataclass
class Line:
    """One client's connection."""

    client: socket.socket
    server: socket.socket
    framing: Framing = field(default_factory=Framing)
    cut: Cut | None = None
    """What has happened to it; after :attr:`Cut.AFTER` it breaks at the server's next word."""

    def ends(self, sender: Side) -> tuple[socket.socket, socket.socket]:
        """Return where the messages of *sender* come from, and where they go."""
        ends = self.client, self.server
        return ends if sender is Side.FRONTEND else ends[::-1]

    def hang_up(self) -> None:
        for side in (self.client, self.server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.client.close()
        self.server.close()


@dataclass
class Wire:
    """A forwarding port before one server; it is armed for one cut at a time."""

    server: str | tuple[str, int]
    listener: socket.socket
    refusing: bool = False
    """Every new connection is closed at once."""
    was_cut: threading.Event = field(default_factory=threading.Event)
    tally: Tally = field(default_factory=Tally)
    """What went over it, on all its connections, since it was last armed or set to count."""
    _armed: Armed | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lines: list[Line] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def address(self) -> tuple[str, int]:
        """Where clients are to connect to."""
        host, port = self.listener.getsockname()
        return host, port

    def url(self, database: Database) -> str:
        host, port = self.address
        options = "sslmode=disable&gssencmode=disable"
        return f"postgresql+psycopg://postgres@{host}:{port}/{database.name}?{options}"

    def cut_at(self, text: bytes, cut: Cut, refuse: bool = False) -> None:
        """Cut at the next client message that holds *text*, and *refuse* connections from then."""
        self._arm(Armed(cut, text=text, refuse=refuse))

    def cut_message(self, side: Side, number: int, cut: Cut, refuse: bool = False) -> None:
        """Cut at the *number*-th message of *side* from now, and *refuse* connections from then."""
        self._arm(Armed(cut, side, number, refuse=refuse))

    def count(self) -> None:
        """Count anew from now, and cut nothing."""
        self._arm(None)

    def _arm(self, armed: Armed | None) -> None:
        with self._lock:
            self._armed, self.tally = armed, Tally()
            self.was_cut.clear()

    def mend(self) -> None:
        """Let connections through again, whole."""
        self._armed, self.refusing = None, False

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
                line = Line(client, _connected(self.server))
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._lines.append(line)
                for side in Side:
                    self.start(self._carry, line, side)

    def _carry(self, line: Line, sender: Side) -> None:
        """Carry what one side says, until the connection ends or is cut."""
        source, _ = line.ends(sender)
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                messages = line.framing.split(sender, data)
                if messages and not self._pass_on(line, sender, messages):
                    break
        if line.cut is not Cut.SILENCE:
            line.hang_up()

    def _pass_on(self, line: Line, sender: Side, messages: list[bytes]) -> bool:
        """Pass *messages* on up to the one that is cut; return whether the connection lives on."""
        _, target = line.ends(sender)
        if line.cut is Cut.AFTER:
            self.was_cut.set()
        if line.cut is not None:
            return line.cut is Cut.SILENCE
        whole = b""
        for message in messages:
            cut = self._take(sender, message)
            if cut is Cut.STALL:
                target.sendall(whole)
                whole = b""
                time.sleep(HOLD_UP)
                self.was_cut.set()
            elif cut is not None:
                return self._break(line, sender, cut, whole, message)
            whole += message
        target.sendall(whole)
        return True

    def _break(self, line: Line, sender: Side, cut: Cut, whole: bytes, message: bytes) -> bool:
        """Cut *line* at *message*, after the *whole* ones before it; return whether it lives on."""
        _, target = line.ends(sender)
        waits = cut is Cut.AFTER and sender is Side.FRONTEND and asks_for_an_answer(message)
        lives = waits or cut is Cut.SILENCE
        line.cut = cut if lives else Cut.BEFORE
        target.sendall(whole + message if cut is Cut.AFTER else whole)
        if not waits:
            self.was_cut.set()
        return lives

    def _take(self, sender: Side, message: bytes) -> Cut | None:
        """Count *message*; return the cut that is to be made at it. Each is made once."""
        with self._lock:
            number = self.tally.add(sender, message)
            armed = self._armed
            if armed is None or not armed.hits(sender, number, message):
                return None
            self._armed, self.refusing = None, armed.refuse
            return armed.cut

    def hang_up(self) -> None:
        """Break every connection there is; those that follow at once are others."""
        for line in list(self._lines):
            line.hang_up()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.hang_up()
        for thread in self._threads:
            thread.join(10)
        for line in self._lines:
            line.close()


def _connected(server: str | tuple[str, int]) -> socket.socket:
    if isinstance(server, tuple):
        made = socket.create_connection(server, 10)
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    made = socket.socket(socket.AF_UNIX)
    made.connect(server)
    return made


@contextmanager
def wire_to(server: str | tuple[str, int]) -> Iterator[Wire]:
    """Forward a free loopback port to *server*."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire(server, listener)
        wire.start(wire.accept)
        try:
            yield wire
        finally:
            wire.close()


@contextmanager
def wire_before(database: Database) -> Iterator[Wire]:
    """Forward a free loopback port to the unix socket of *database*'s server."""
    server = database.server
    with wire_to(f"{server.socket_folder}/.s.PGSQL.{server.port}") as wire:
        yield wire
