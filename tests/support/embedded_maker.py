"""Run a temporary server, say where it and its folders are, and live until told to go."""

from __future__ import annotations

import signal
import sys

from sample_app.embedded import temporary

with temporary() as server:
    sys.stdout.write(f"{server.pid}\n{server.socket_folder}\n{server.data}\n")
    sys.stdout.flush()
    signal.pause()
