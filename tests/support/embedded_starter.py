"""Ask for the embedded server of a folder, say where it is, and live until told to go.

Usage: embedded_starter.py FOLDER_OF_THE_PACKAGE BASE [fork]

With `fork` a child lives on after the starter; its number is printed after the URL.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from embedded import EmbeddedError, ensure

try:
    print(ensure(Path(sys.argv[2])), flush=True)
except EmbeddedError as error:
    sys.exit(str(error))
if "fork" in sys.argv and (child := os.fork()):
    print(child, flush=True)
    os._exit(0)
signal.pause()
