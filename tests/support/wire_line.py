"""One connection over a wire, and the cut that is made at one of its messages."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from dataclasses import dataclass, field

from .wire_messages import Framing, Side


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
    done: threading.Event = field(default_factory=threading.Event)

    def hits(self, side: Side, number: int, message: bytes) -> bool:
        if side is not self.side:
            return False
        return number == self.number if self.number else self.text in message


@dataclass(eq=False)
class Line:
    """One client's connection."""

    client: socket.socket
    server: socket.socket
    framing: Framing = field(default_factory=Framing)
    cut: Cut | None = None
    """What has happened to it; after :attr:`Cut.AFTER` it breaks at the server's next word."""
    done: threading.Event = field(default_factory=threading.Event)
    """Set when it has."""
    ways: int = len(Side)
    """How many sides are still listened to."""

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


def connected(server: str | tuple[str, int]) -> socket.socket | None:
    """Return a connection to *server*, or ``None`` where none can be had."""
    if isinstance(server, str):
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(server)
        except OSError:
            made.close()
            return None
        return made
    try:
        made = socket.create_connection(server, 10)
    except OSError:
        return None
    made.settimeout(None)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
