"""An HTTP request as bytes, and what can befall bytes on their way."""

from __future__ import annotations

import socket
from errno import ECONNRESET, ENOTCONN, EPIPE
from random import Random

from .worlds import SECRET

SLOT_HEADER = "X-Fuzzed-Slot"
GOOD_SLOT = "2026-01-02T00:00:00Z"


def request(job: str) -> bytes:
    """Return a good request for *job*, which names a slot."""
    return (
        f"POST /api/cron/{job} HTTP/1.1\r\n"
        "Host: app\r\n"
        "User-Agent: scheduler/1.0\r\n"
        "Accept: */*\r\n"
        f"Authorization: Bearer {SECRET}\r\n"
        f"{SLOT_HEADER}: {GOOD_SLOT}\r\n"
        "Content-Type: application/json\r\n"
        "Content-Length: 15\r\n"
        "Connection: close\r\n"
        "\r\n"
        '{"slot": "now"}'
    ).encode()


GOOD = {job: request(job) for job in ("idle", "daily")}
"""By job; that of ``idle``, which has no schedule, names a slot in vain."""
HUGE = 100_000
HUNG_UP = (ECONNRESET, EPIPE, ENOTCONN)
"""What a stream says whose other side had heard enough."""
WORDS = [b"\r\n", b"\n", b"\0", b"\xff", b" ", b"//", b"%00", b"%0a", b": ", b"Transfer-Encoding: "]
WORDS += [b"chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Host: ..\r\n"]
WORDS += [b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Expect: 100-continue\r\n"]


def spoil(data: bytes, random: Random) -> bytes:
    """Return *data* with one to four things done to it."""
    for _ in range(random.randint(1, 4)):
        data = random.choice([flip, drop, insert, repeat, truncate, swell])(data, random)
    return data


def place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def flip(data: bytes, random: Random) -> bytes:
    at = place(data, random)
    return (
        data[:at]
        + bytes(byte ^ 1 << random.randrange(8) for byte in data[at : at + 1])
        + (data[at + 1 :])
    )


def drop(data: bytes, random: Random) -> bytes:
    at = place(data, random)
    return data[:at] + data[at + random.randint(1, 20) :]


def insert(data: bytes, random: Random) -> bytes:
    at = place(data, random)
    return data[:at] + random.choice([*WORDS, random.randbytes(5)]) + data[at:]


def repeat(data: bytes, random: Random) -> bytes:
    """Say a part, from a byte to all of it, twice."""
    begin, end = sorted((place(data, random), place(data, random)))
    return data[:end] + data[begin:]


def truncate(data: bytes, random: Random) -> bytes:
    return data[: place(data, random)] if random.random() < 0.3 else data


def swell(data: bytes, random: Random) -> bytes:
    """Repeat one byte very often, though seldom, since it takes its time."""
    at = place(data, random)
    return data[:at] + data[at : at + 1] * random.choice([1, 1, 1, HUGE]) + data[at:]


def exchange(port: int, data: bytes) -> bytes:
    """Send *data* and no more, and return all that is said until the other side hangs up."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), 60) as stream:
        try:
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            while more := stream.recv(65536):
                said += more
        except OSError as error:
            if error.errno not in HUNG_UP:
                raise
    return said
