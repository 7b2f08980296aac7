"""Run a temporary server, say where it and its folder are, and live until told to go."""

from __future__ import annotations

import signal

from sample_app.embedded import temporary

with temporary() as server:
    print(server.pid, server.socket_folder, server.data, sep="\n", flush=True)
    signal.pause()
