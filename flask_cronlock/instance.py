"""The process's place: where a run was made."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

VARIABLES = ("CRONLOCK_INSTANCE", "DYNO", "RENDER_INSTANCE_ID", "FLY_MACHINE_ID")
LONGEST_NAME = 100


def find_instance(given: object = None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the name that was *given* to this instance, or else the platform's, or the host's.

    Characters that PostgreSQL would not keep in ``application_name`` become ``?``; what is longer
    than :data:`LONGEST_NAME` is cut.
    """
    candidates = [str(given or ""), *(environ.get(name, "") for name in VARIABLES)]
    candidates += [socket.gethostname(), "unknown"]
    name = next(name for name in map(str.strip, candidates) if name)
    return re.sub(r"[^!-~]", "?", name)[:LONGEST_NAME]


def with_pid(instance: str) -> str:
    """Return *instance* with the pid, asked anew each time since a worker is a fork."""
    return f"{instance}/{os.getpid()}"
