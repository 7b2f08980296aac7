"""Wait for what happens elsewhere, and watch processes live and die."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(reached: Callable[[], object], seconds: float = 30) -> None:
    """Ask every 20 ms whether something holds; fail after *seconds*."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def dead(pid: int) -> bool:
    """Tell whether a process is gone, or a zombie that only its parent can remove."""
    state, _ = _look_at(pid)
    return state in ("", "Z")


def parent_of(pid: int) -> int:
    """Return the number of a living process's parent."""
    return int(_look_at(pid)[1])


def _look_at(pid: int) -> tuple[str, str]:
    # A bare Debian has no `ps`, a Mac has no /proc.
    if Path("/proc/self/stat").exists():
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            words = []
    else:
        command = ["ps", "-o", "stat=", "-o", "ppid=", "-p", str(pid)]
        words = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return (words[0][:1], words[1]) if words else ("", "")
