"""What happened, told by every process for itself and read as one at the end."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

BODY = ("begin", "step", "end")
"""What a body writes."""
CLIENT = ("hit", "answer", "gave up")
SERVER = ("arrive", "leave")
"""What an instance writes of a request."""
HAND = ("fault", "gone", "back")
"""What is done to them; the last two, when a server that all need is stopped, and ready again."""
KINDS = (*BODY, *CLIENT, *SERVER, *HAND)

Slot = tuple[str, str]
"""A job and the text of one of its slots."""


def now() -> float:
    """Return the seconds of a clock that all processes of this machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class Event:
    """One thing that happened; *run* is unique to each body."""

    at: float
    who: str
    kind: str
    job: str = ""
    slot: str = ""
    run: str = ""
    detail: str = ""
    status: int = 0
    """The HTTP status of an answer."""
    request: int = 0
    """The number of a request among those of its process."""


def named(instance: str, pid: int) -> str:
    """Return the name of a process of an instance."""
    return f"{instance}-{pid}"


def history_file(folder: Path | str, who: str) -> Path:
    """Return the file of one process; it is there once that has a recorder."""
    return Path(folder) / f"{quote(who, safe='')}.jsonl"


class Recorder:
    """One process's file in the history's folder; its threads may share it."""

    def __init__(self, folder: Path | str, who: str) -> None:
        self.who = who
        path = history_file(folder, who)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(
        self,
        kind: str,
        job: str = "",
        slot: str = "",
        run: str = "",
        detail: str = "",
        status: int = 0,
        at: float | None = None,
        request: int = 0,
    ) -> None:
        """Write an event that happened *at* a moment, by default now.

        A step is written after it has succeeded, with the moment before it was sent: a process
        can be frozen in between, but a backend that did it was alive later than that.
        """
        assert kind in KINDS, kind
        moment = now() if at is None else at
        event = Event(moment, self.who, kind, job, slot, run, detail, status, request)
        told = {key: value for key, value in asdict(event).items() if value}
        # One call a line: whoever is killed has written it whole or not at all.
        os.write(self._file, json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read(folder: Path | str) -> list[Event]:
    """Return all events of a history, oldest first; a torn last line of a file is left out."""
    events = [event for path in Path(folder).glob("*.jsonl") for event in _read(path)]
    return sorted(events, key=lambda event: event.at)


def _read(path: Path) -> list[Event]:
    *lines, _torn = path.read_text().split("\n")
    return [Event(**json.loads(line)) for line in lines]
