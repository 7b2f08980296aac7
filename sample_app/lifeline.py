"""Run a command for as long as stdin stays open: `python -m sample_app.lifeline COMMAND …`.

Stdin is a pipe whose other end only the starter holds. The kernel closes it however the starter
ends, SIGKILL included, so the command never outlives it. SIGUSR1 kills the command at once, with
all that it started.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

POLL_SECONDS = 0.1
GRACE_SECONDS = 5.0


def main(command: list[str]) -> int:
    """Return the command's exit status; end it, and what it started, when stdin is closed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, close_fds=False, start_new_session=True
    )
    signal.signal(signal.SIGUSR1, lambda *_: kill(child))
    try:
        while child.poll() is None and not starter_is_gone():
            pass
    finally:
        stop(child)
    return child.returncode


def starter_is_gone() -> bool:
    """Wait a moment; return whether stdin was closed."""
    readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


def stop(child: subprocess.Popen[bytes]) -> None:
    """Ask the command to end, and kill its process group if it has not after a while."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        kill(child)
        child.wait()


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the command's process group, the command being one that nobody has waited for yet."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
