"""Ask for the embedded server of a folder, say where it is, and live until told to go.

Usage: embedded_starter.py FOLDER_OF_THE_PACKAGE BASE [fork]

An empty BASE is the default one. With `fork` a child lives on after the starter, which prints its
number after the URL. Needs the standard library only, so that any account's Python will do.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from embedded import EmbeddedError, ensure

try:
    url = ensure(Path(sys.argv[2]) if sys.argv[2] else None)
except EmbeddedError as error:
    sys.exit(str(error))
sys.stdout.write(f"{url}\n")
sys.stdout.flush()
if "fork" in sys.argv and (child := os.fork()):
    sys.stdout.write(f"{child}\n")
    sys.stdout.flush()
    os._exit(0)
signal.pause()
