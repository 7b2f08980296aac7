"""Where the messages of PostgreSQL's protocol (version 3) begin and end on one connection."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field

WISHES = (80877103, 80877104)
"""Codes of the first messages that ask for TLS or GSSAPI; one byte answers, and then the true
start-up message follows."""
ASKS = (b"Q", b"S", b"p", b"\0")
"""What the client's messages begin with that the server always answers: Query, Sync, and a part of
a password; a start-up message has no type, and begins with the first byte of its length."""
READY = b"Z"
"""The server's last message of an answer: ReadyForQuery."""


class Side(enum.Enum):
    """Who sends a message."""

    FRONTEND = "client"
    BACKEND = "server"


@dataclass
class Framing:
    """Splits what both sides of one connection say into whole messages.

    Where both agree on encryption, a message is whatever comes in one piece.
    """

    _started: bool = False
    _wished: bool = False
    _sealed: bool = False
    _rest: dict[Side, bytes] = field(default_factory=lambda: dict.fromkeys(Side, b""))

    def split(self, side: Side, data: bytes) -> list[bytes]:
        """Return the messages of *side* that *data* makes whole."""
        rest = self._rest[side] + data
        messages = []
        while size := self._size(side, rest):
            message, rest = rest[:size], rest[size:]
            self._note(side, message)
            messages.append(message)
        self._rest[side] = rest
        return messages

    def _size(self, side: Side, data: bytes) -> int:
        """Return the size of the first message in *data*, or 0 where its end has not come yet."""
        if self._sealed:
            return len(data)
        if side is Side.BACKEND and self._wished:
            return len(data[:1])
        before = 1 if side is Side.BACKEND or self._started else 0
        if len(data) < before + 4:
            return 0
        size = before + int(struct.unpack_from("!I", data, before)[0])
        return size if len(data) >= size else 0

    def _note(self, side: Side, message: bytes) -> None:
        if side is Side.BACKEND:
            self._sealed = self._sealed or (self._wished and message in (b"S", b"G"))
            self._wished = False
        elif not self._started and not self._sealed:
            self._wished = struct.unpack_from("!I", message, 4)[0] in WISHES
            self._started = not self._wished


def asks_for_an_answer(message: bytes) -> bool:
    """Tell whether the server answers this *message* of a client."""
    return message[:1] in ASKS
