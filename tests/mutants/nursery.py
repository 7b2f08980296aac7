"""Runs pytest in children of a process that is warm already."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer

FORKER = Path(__file__).with_name("forker.py")


class Nursery:
    """One warm process, whose children run one after the other."""

    def __init__(self) -> None:
        self._forker = subprocess.Popen(
            [sys.executable, FORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._forker.communicate()

    def run(
        self, checkout: Path, environ: Mapping[str, str], arguments: Sequence[str], longest: float
    ) -> tuple[int | None, str]:
        """Return pytest's exit status, ``None`` where it did not end in time, and its output."""
        assert self._forker.stdin is not None
        with tempfile.NamedTemporaryFile("r", errors="replace") as output:
            order = {
                "checkout": str(checkout),
                "environ": dict(environ),
                "arguments": list(arguments),
                "output": output.name,
            }
            self._forker.stdin.write(json.dumps(order) + "\n")
            self._forker.stdin.flush()
            timer = Timer(longest, _end_all_of, [self._answer()])
            timer.start()
            code = self._answer()
            timer.cancel()
            return code if code >= 0 else None, output.read()

    def _answer(self) -> int:
        assert self._forker.stdout is not None
        return int(self._forker.stdout.readline())


def _end_all_of(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
