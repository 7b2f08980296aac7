"""A wire between a client and PostgreSQL that can be broken at one message."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .databases import Database
from .wire_line import Armed, Cut, Line, connected
from .wire_messages import Side, asks_for_an_answer
from .wire_tally import Tally

HOLD_UP = 0.01
"""Seconds for which a message is held up."""


@dataclass
class Wire:
    """A forwarding port before one server; it is armed for one cut at a time."""

    server: str | tuple[str, int]
    listener: socket.socket
    refusing: bool = False
    """Every new connection is closed at once."""
    was_cut: threading.Event = field(default_factory=threading.Event)
    """Whether the cut that it was last armed for has been made."""
    _armed: Armed | None = None
    _tally: Tally = field(default_factory=Tally)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lines: list[Line] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def address(self) -> tuple[str, int]:
        """Where clients are to connect to."""
        host, port = self.listener.getsockname()
        return host, port

    @property
    def tally(self) -> Tally:
        """What went over it, on all its connections, since it was last armed or set to count."""
        with self._lock:
            return self._tally.copy()

    @property
    def whole(self) -> bool:
        """Whether a connection is there that nothing has happened to."""
        with self._lock:
            return any(line.cut is None for line in self._lines)

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
            self._armed, self._tally = armed, Tally()
            self.was_cut = armed.done if armed else threading.Event()

    def mend(self) -> None:
        """Let connections through again, whole."""
        with self._lock:
            self._armed, self.refusing = None, False

    def start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = None if self.refusing else connected(self.server)
                if server is None:
                    client.close()
                    continue
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                line = Line(client, server)
                with self._lock:
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
        self._leave(line)

    def _leave(self, line: Line) -> None:
        """Close *line* when neither side is listened to any more."""
        with self._lock:
            line.ways -= 1
            if line.ways:
                return
            self._lines.remove(line)
        line.close()

    def _pass_on(self, line: Line, sender: Side, messages: list[bytes]) -> bool:
        """Pass *messages* on up to the one that is cut; return whether the connection lives on."""
        _, target = line.ends(sender)
        if line.cut is Cut.AFTER:
            line.done.set()
        if line.cut is not None:
            return line.cut is Cut.SILENCE
        whole = b""
        for message in messages:
            armed = self._take(sender, message)
            if armed and armed.cut is Cut.STALL:
                target.sendall(whole)
                whole = b""
                time.sleep(HOLD_UP)
                armed.done.set()
            elif armed:
                return self._break(line, sender, armed, whole, message)
            whole += message
        target.sendall(whole)
        return True

    def _break(self, line: Line, sender: Side, armed: Armed, whole: bytes, message: bytes) -> bool:
        """Cut *line* at *message*, after the *whole* ones before it; return whether it lives on."""
        _, target = line.ends(sender)
        cut = armed.cut
        waits = cut is Cut.AFTER and sender is Side.FRONTEND and asks_for_an_answer(message)
        lives = waits or cut is Cut.SILENCE
        line.done, line.cut = armed.done, cut if lives else Cut.BEFORE
        target.sendall(whole + message if cut is Cut.AFTER else whole)
        if not waits:
            armed.done.set()
        return lives

    def _take(self, sender: Side, message: bytes) -> Armed | None:
        """Count *message*; return the cut that is to be made at it. Each is made once."""
        with self._lock:
            number = self._tally.add(sender, message)
            armed = self._armed
            if armed is None or not armed.hits(sender, number, message):
                return None
            self._armed, self.refusing = None, armed.refuse
            return armed

    def hang_up(self) -> None:
        """Break every connection there is; those that follow at once are others."""
        with self._lock:
            lines = [*self._lines]
        for line in lines:
            line.hang_up()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        accepting = self._threads[0]
        accepting.join(10)
        self.hang_up()
        for thread in self._threads:
            thread.join(10)


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
